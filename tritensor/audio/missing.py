"""Names of torchaudio that are not here, and why."""

from __future__ import annotations

_BEAMS = "several microphones are not combined here: compute covariances and weights with einsum and linalg.solve"
_LOOPS = "an effect that runs sample by sample with feedback"
FUNCTIONS = {
    **dict.fromkeys(("psd", "mvdr_weights_souden", "mvdr_weights_rtf", "rtf_evd", "rtf_power", "apply_beamforming"), _BEAMS),
    **dict.fromkeys(("flanger", "phaser", "vad", "dither"), _LOOPS),
    **dict.fromkeys(("forced_align", "merge_tokens", "TokenSpan", "rnnt_loss"), "compiled in torchaudio; nn.functional.ctc_loss is here"),
}
TRANSFORMS = {
    **dict.fromkeys(("MVDR", "PSD", "RTFMVDR", "SoudenMVDR"), _BEAMS),
    "Vad": _LOOPS,
    "RNNTLoss": FUNCTIONS["rnnt_loss"],
}


def error(room: str, name: str, absent: dict[str, str]) -> AttributeError:
    """The error for a name that a module of audio has not."""
    said = f"torchaudio has it, tritensor does not: {absent[name]}" if name in absent else f"dir(tritensor.audio.{room}) lists what is here"
    return AttributeError(f"module 'tritensor.audio.{room}' has no attribute {name!r}: {said}")
