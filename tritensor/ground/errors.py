"""The errors tritensor raises: one class per kind of mistake, each also the built-in that PyTorch or numpy users catch."""

import numpy as np


class ShapeError(ValueError, RuntimeError):
    """Sizes that do not fit together; the message names the op, what was given and what disagrees."""


class EmptyError(ShapeError, IndexError):
    """A value asked of no elements where there is none, such as the largest."""


class IndexShapeError(ShapeError, IndexError):
    """An index of a shape that does not fit what it names, or what is put there."""


class AssertedError(ShapeError, AssertionError):
    """Shapes that do not fit where PyTorch asserts that they do."""


class ArgumentError(ValueError, RuntimeError):
    """A number or a word that an argument does not take; the message says what it takes."""


class AssertedArgumentError(ArgumentError, AssertionError):
    """An argument that PyTorch asserts not to be given."""


class UnknownModeError(ArgumentError, NotImplementedError):
    """A way of doing something that is not there, for which PyTorch raises NotImplementedError."""


class UnsupportedShapeError(ShapeError, NotImplementedError):
    """Dimensions that a mode does not take, for which PyTorch raises NotImplementedError."""


class StreamError(TypeError, AssertionError):
    """A dataset with indices where a stream is needed, or the other way round."""


class NumberRangeError(ArgumentError, OverflowError):
    """A number that its type cannot hold."""


class OutOfRangeError(IndexError, RuntimeError):
    """A position beyond the elements that there are."""


class DivisionByZeroError(ZeroDivisionError, RuntimeError):
    """Integers divided by a 0."""


class DTypeError(TypeError, NotImplementedError):
    """An element type that an op does not take, or two that have no common type."""


class DeviceError(TypeError, RuntimeError):
    """Tensors on different devices, or a device that is not there."""


class MetaError(DeviceError, NotImplementedError):
    """Values asked of a tensor on device meta, which has none, or an op whose result's shape hangs on them."""


class GradError(RuntimeError):
    """A gradient that cannot be had: a freed graph, an overwritten value, no graph at all."""


class NoDerivativeError(GradError, NotImplementedError):
    """A derivative of a function that has none, or none that anybody has written; PyTorch raises NotImplementedError."""


class GradcheckError(GradError):
    """A gradient that is not what differences say, or a function that gradcheck cannot check."""


class TransformError(RuntimeError):
    """Something that a function cannot do while vmap, grad or jvp transforms it."""


class NoValuesError(TransformError):
    """A function asks for a tensor's values under vmap, where there are as many as examples; `level` is vmap's."""

    def __init__(self, level: object, said: str) -> None:
        super().__init__(said)
        self.level = level


class RegistrationError(TypeError):
    """An op record that is unfinished or contradicts itself; nothing was registered."""


class PluginError(ImportError):
    """An installed package whose ops or models cannot be had, because it raises when it is imported."""


class LinAlgError(np.linalg.LinAlgError, RuntimeError):
    """Matrices that a factorization cannot take for what their numbers are: singular, or not positive definite."""


class LaunchError(RuntimeError):
    """A kernel that could not be compiled or started; the message names the kernel and the reason."""


class CaptureError(RuntimeError):
    """Something that a CUDA graph cannot record, or a capture that was begun or ended out of turn; nothing of it was queued."""


class MissingFileError(FileNotFoundError, RuntimeError):
    """A file that is to be read and is not there."""


class DownloadError(OSError, RuntimeError):
    """A file that no address gave whole and unchanged; the message names each address with its reason, and where to put the file by hand."""


class OutOfDescriptorsError(OSError, RuntimeError):
    """The process can open no further file, which the first use of a function needs; nothing is left half loaded, and it works once there are some."""


class OutOfMemoryError(MemoryError, RuntimeError):
    """A device that has no room for what was asked."""


class ForkedWorkersWarning(UserWarning):
    """A DataLoader's workers are forked, because new processes could not be given what it reads."""


class HostCopyWarning(UserWarning):
    """An op without a kernel was called on a GPU: its tensors go to the host and back."""


class DistError(RuntimeError):
    """Something that processes cannot do together: not started as a group, of different programs, at odds over what they call."""


class DistNetworkError(DistError):
    """A connection to another process that could not be made, or was lost."""


class DistStoreError(DistError):
    """What did not come to a store of keys within its timeout."""


class QueueEmptyError(DistStoreError):
    """A store's queue that holds nothing, asked without waiting."""


class DistBackendError(DistError):
    """What MPI or NCCL reports; the message has its words."""


class RankFailedError(DistBackendError):
    """A process of the group died, hangs or does something else: `ranks` are its numbers in the world; the message names op and line."""

    def __init__(self, said: str, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(said)
        self.ranks = ranks


class TracerWarning(Warning):
    """Python decided on the values of a tensor while it was traced: what was recorded may be wrong for others."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """PyTorch silences its own library's lines here; tritensor's warn of none."""


class CheckpointError(ValueError, RuntimeError):
    """A file that is torn, foreign, or does not match the module it is loaded into."""


HOME = "tritensor.errors"  # the public name of this module, which tracebacks and pickles show
for _class in [c for c in globals().values() if isinstance(c, type) and issubclass(c, BaseException)]:
    _class.__module__ = HOME
