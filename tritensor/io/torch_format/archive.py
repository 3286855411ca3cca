"""Reader of torch.save's zip archive: its directory, each entry checked, and the span of bytes of each record.

Layout: records one after another, each behind a local header; then the central directory, which names them; then its end record, before it
that of zip64. Specification: APPNOTE.TXT of PKWARE, 4.3. PyTorch stores records without compression, at multiples of 64 bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tritensor.ground.errors import CheckpointError

FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF  # "see zip64"
END = struct.Struct("<4s4H2LH")  # PK56: disks, entries, size and offset of the directory, length of a comment
LOCATOR = struct.Struct("<4sLQL")  # PK67: the offset of zip64's end record
END64 = struct.Struct("<4sQ2H2L4Q")  # PK66
ENTRY = struct.Struct("<4s6H3L5H2L")  # PK12: an entry of the directory
LOCAL = struct.Struct("<4s5H3L2H")  # PK34: a local header


class Record(NamedTuple):
    """The bytes of a record: `size` of them from `begin`."""

    begin: int
    size: int


class Archive:
    """The records of an archive by name, without the folder that all stand in."""

    def __init__(self, data: memoryview, label: str) -> None:
        self.data, self.label = data, label
        entries = self._read_entries()
        self.folder = self._find_folder(entries)
        self.records = {name.removeprefix(self.folder): record for name, record in entries.items() if name.startswith(self.folder)}
        if "constants.pkl" in self.records:  # torch.jit.save writes this one beside data.pkl
            raise CheckpointError(
                f"{label}: this is a TorchScript archive, which holds a program; where PyTorch is installed, save torch.jit.load(file).state_dict()"
            )

    def read(self, name: str) -> memoryview:
        """The bytes of a record."""
        record = self.records[name]
        return self.data[record.begin : record.begin + record.size]

    def _damage_error(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.label}: {what}; the file is damaged: copy or save it again")

    def _find_folder(self, entries: dict[str, Record]) -> str:
        """The folder of the records, with its slash: torch.save names it after the file."""
        for name in entries:
            folder, slash, rest = name.rpartition("/")
            if rest == "data.pkl" and "/" not in folder:
                return folder + slash
        if any(name.endswith(".npy") for name in entries):
            raise CheckpointError(f"{self.label}: this is an archive of numpy's (.npz); read it with numpy.load and from_numpy")
        names = ", ".join(list(entries)[:3])
        raise CheckpointError(
            f"{self.label}: this zip archive has no data.pkl, so torch.save did not write it; it holds {names or 'nothing'}"
        )

    def _find_directory(self) -> tuple[int, int, int]:
        """(offset, size, number of entries) of the central directory."""
        data, label = self.data, self.label
        # It is searched from the end: a comment behind it may itself hold the mark, and then its length does not fit.
        tail = bytes(data[-(END.size + FULL16) :])
        at = tail.rfind(b"PK\x05\x06")
        while at >= 0 and (len(tail) - at < END.size or END.unpack_from(tail, at)[7] != len(tail) - at - END.size):
            at = tail.rfind(b"PK\x05\x06", 0, at)
        if at < 0:
            raise CheckpointError(f"{label}: the archive's directory, at its end, is missing; the file is torn: copy or save it again")
        end = len(data) - len(tail) + at
        _, disk, first, here, count, size, offset, _ = END.unpack_from(tail, at)
        if end >= LOCATOR.size and bytes(data[end - LOCATOR.size : end - LOCATOR.size + 4]) == b"PK\x06\x07":
            _, _, end64, _ = LOCATOR.unpack_from(data, end - LOCATOR.size)
            if end64 + END64.size > end - LOCATOR.size or bytes(data[end64 : end64 + 4]) != b"PK\x06\x06":
                raise self._damage_error(f"the end record of zip64 is not at byte {end64}")
            _, _, _, _, disk, first, here, count, size, offset = END64.unpack_from(data, end64)
            end = end64
        if disk or first or here != count:
            raise self._damage_error("the archive claims to be one of several parts")
        if offset + size > end or count * ENTRY.size > size:
            raise self._damage_error(f"the directory of {count} entries in {size} bytes at {offset} does not fit before byte {end}")
        return offset, size, count

    def _read_entries(self) -> dict[str, Record]:
        at, size, count = self._find_directory()
        start, end = at, at + size
        found: dict[str, Record] = {}
        taken: list[tuple[int, int, str]] = []
        for _ in range(count):
            if at + ENTRY.size > end:
                raise self._damage_error("the directory ends before its last entry")
            entry = ENTRY.unpack_from(self.data, at)
            name_length, extra_length, comment = entry[10:13]
            at += ENTRY.size
            if entry[0] != b"PK\x01\x02" or at + name_length + extra_length + comment > end:
                raise self._damage_error(f"byte {at - ENTRY.size} of the directory is no entry")
            name = self._decode_name(self.data[at : at + name_length])
            if name in found:
                raise self._damage_error(f"the record {name!r} stands twice in the directory")
            extra = bytes(self.data[at + name_length : at + name_length + extra_length])
            at += name_length + extra_length + comment
            record, header = self._find_record(name, entry, extra, start)
            found[name] = record
            taken.append((header, record.begin + record.size, name))
        taken.sort()  # records that overlap would let a small file ask for much memory
        for (_, before, one), (begin, _, other) in zip(taken, taken[1:], strict=False):
            if before > begin:
                raise self._damage_error(f"the records {one!r} and {other!r} overlap")
        return found

    def _decode_name(self, raw: memoryview) -> str:
        try:
            name = str(raw, "utf-8")
        except UnicodeDecodeError:
            raise self._damage_error("a record's name is no UTF-8") from None
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise CheckpointError(f"{self.label}: a record is called {name!r}, which leads out of the archive; the file is hostile")
        return name

    def _find_record(self, name: str, entry: tuple[int, ...], extra: bytes, limit: int) -> tuple[Record, int]:
        """(the bytes of a directory's entry, the offset of their local header)."""
        flags, method = entry[3], entry[4]
        packed, size, header = entry[8], entry[9], entry[16]
        size, packed, header = self._zip64_sizes(name, extra, size, packed, header)
        if flags & 0x1:
            raise CheckpointError(f"{self.label}: the record {name!r} is encrypted; decrypt the archive first")
        if method != 0 or packed != size:
            raise CheckpointError(
                f"{self.label}: the record {name!r} is compressed (method {method}, {packed} bytes for {size}); torch.save stores records as they "
                "are: unpack the archive and pack it with `zip -0`"
            )
        if header + LOCAL.size > limit:
            raise self._damage_error(f"the record {name!r} is said to lie at byte {header}, behind the last")
        local = LOCAL.unpack_from(self.data, header)
        begin = header + LOCAL.size + local[9] + local[10]
        if local[0] != b"PK\x03\x04" or local[3] != method or begin + size > limit:
            raise self._damage_error(f"the record {name!r}, {size} bytes at {header}, does not lie there")
        # two readers that go by different names would load different records
        if bytes(self.data[header + LOCAL.size : header + LOCAL.size + local[9]]) != name.encode():
            raise self._damage_error(f"the record {name!r} has another name where it lies")
        return Record(begin, size), header

    def _zip64_sizes(self, name: str, extra: bytes, size: int, packed: int, header: int) -> tuple[int, int, int]:
        """The numbers of an entry, those that 32 bits do not hold from its zip64 field."""
        if FULL32 not in (size, packed, header):
            return size, packed, header
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack_from("<2H", extra, at)
            if kind == 1:
                wide = [*struct.unpack_from(f"<{length // 8}Q", extra[: at + 4 + length], at + 4)] if at + 4 + length <= len(extra) else []
                found = [wide.pop(0) if x == FULL32 and wide else x for x in (size, packed, header)]
                return found[0], found[1], found[2]
            at += 4 + length
        raise self._damage_error(f"the record {name!r} has no sizes of zip64")
