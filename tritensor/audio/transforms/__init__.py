"""Layers that compute, change and augment sound, with the names of torchaudio.transforms."""

from tritensor.audio import missing
from tritensor.audio.transforms.features import LFCC as LFCC
from tritensor.audio.transforms.features import MFCC as MFCC
from tritensor.audio.transforms.features import AmplitudeToDB as AmplitudeToDB
from tritensor.audio.transforms.features import ComputeDeltas as ComputeDeltas
from tritensor.audio.transforms.features import InverseMelScale as InverseMelScale
from tritensor.audio.transforms.features import Loudness as Loudness
from tritensor.audio.transforms.features import MelScale as MelScale
from tritensor.audio.transforms.features import MelSpectrogram as MelSpectrogram
from tritensor.audio.transforms.features import SlidingWindowCmn as SlidingWindowCmn
from tritensor.audio.transforms.masking import FrequencyMasking as FrequencyMasking
from tritensor.audio.transforms.masking import SpecAugment as SpecAugment
from tritensor.audio.transforms.masking import TimeMasking as TimeMasking
from tritensor.audio.transforms.spectra import GriffinLim as GriffinLim
from tritensor.audio.transforms.spectra import InverseSpectrogram as InverseSpectrogram
from tritensor.audio.transforms.spectra import PitchShift as PitchShift
from tritensor.audio.transforms.spectra import SpectralCentroid as SpectralCentroid
from tritensor.audio.transforms.spectra import Spectrogram as Spectrogram
from tritensor.audio.transforms.spectra import TimeStretch as TimeStretch
from tritensor.audio.transforms.waveforms import AddNoise as AddNoise
from tritensor.audio.transforms.waveforms import Convolve as Convolve
from tritensor.audio.transforms.waveforms import Deemphasis as Deemphasis
from tritensor.audio.transforms.waveforms import Fade as Fade
from tritensor.audio.transforms.waveforms import FFTConvolve as FFTConvolve
from tritensor.audio.transforms.waveforms import MuLawDecoding as MuLawDecoding
from tritensor.audio.transforms.waveforms import MuLawEncoding as MuLawEncoding
from tritensor.audio.transforms.waveforms import Preemphasis as Preemphasis
from tritensor.audio.transforms.waveforms import Resample as Resample
from tritensor.audio.transforms.waveforms import Speed as Speed
from tritensor.audio.transforms.waveforms import SpeedPerturbation as SpeedPerturbation
from tritensor.audio.transforms.waveforms import Vol as Vol


def __getattr__(name: str) -> object:
    """Raises AttributeError, which says of torchaudio's transforms that are not here why."""
    raise missing.error("transforms", name, missing.TRANSFORMS)
