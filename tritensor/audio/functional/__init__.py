"""Functions of waveforms and spectrograms, with the names of torchaudio.functional."""

from tritensor.audio import missing
from tritensor.audio.functional.biquads import allpass_biquad as allpass_biquad
from tritensor.audio.functional.biquads import band_biquad as band_biquad
from tritensor.audio.functional.biquads import bandpass_biquad as bandpass_biquad
from tritensor.audio.functional.biquads import bandreject_biquad as bandreject_biquad
from tritensor.audio.functional.biquads import bass_biquad as bass_biquad
from tritensor.audio.functional.biquads import biquad as biquad
from tritensor.audio.functional.biquads import deemph_biquad as deemph_biquad
from tritensor.audio.functional.biquads import equalizer_biquad as equalizer_biquad
from tritensor.audio.functional.biquads import highpass_biquad as highpass_biquad
from tritensor.audio.functional.biquads import lowpass_biquad as lowpass_biquad
from tritensor.audio.functional.biquads import riaa_biquad as riaa_biquad
from tritensor.audio.functional.biquads import treble_biquad as treble_biquad
from tritensor.audio.functional.effects import contrast as contrast
from tritensor.audio.functional.effects import dcshift as dcshift
from tritensor.audio.functional.effects import deemphasis as deemphasis
from tritensor.audio.functional.effects import gain as gain
from tritensor.audio.functional.effects import overdrive as overdrive
from tritensor.audio.functional.effects import pitch_shift as pitch_shift
from tritensor.audio.functional.effects import preemphasis as preemphasis
from tritensor.audio.functional.effects import speed as speed
from tritensor.audio.functional.features import compute_deltas as compute_deltas
from tritensor.audio.functional.features import detect_pitch_frequency as detect_pitch_frequency
from tritensor.audio.functional.features import loudness as loudness
from tritensor.audio.functional.features import sliding_window_cmn as sliding_window_cmn
from tritensor.audio.functional.masking import mask_along_axis as mask_along_axis
from tritensor.audio.functional.masking import mask_along_axis_iid as mask_along_axis_iid
from tritensor.audio.functional.mixing import add_noise as add_noise
from tritensor.audio.functional.mixing import convolve as convolve
from tritensor.audio.functional.mixing import edit_distance as edit_distance
from tritensor.audio.functional.mixing import fftconvolve as fftconvolve
from tritensor.audio.functional.mixing import frechet_distance as frechet_distance
from tritensor.audio.functional.recursive_filters import filtfilt as filtfilt
from tritensor.audio.functional.recursive_filters import lfilter as lfilter
from tritensor.audio.functional.resampling import resample as resample
from tritensor.audio.functional.scales import DB_to_amplitude as DB_to_amplitude
from tritensor.audio.functional.scales import amplitude_to_DB as amplitude_to_DB
from tritensor.audio.functional.scales import create_dct as create_dct
from tritensor.audio.functional.scales import linear_fbanks as linear_fbanks
from tritensor.audio.functional.scales import melscale_fbanks as melscale_fbanks
from tritensor.audio.functional.scales import mu_law_decoding as mu_law_decoding
from tritensor.audio.functional.scales import mu_law_encoding as mu_law_encoding
from tritensor.audio.functional.spectra import griffinlim as griffinlim
from tritensor.audio.functional.spectra import inverse_spectrogram as inverse_spectrogram
from tritensor.audio.functional.spectra import phase_vocoder as phase_vocoder
from tritensor.audio.functional.spectra import spectral_centroid as spectral_centroid
from tritensor.audio.functional.spectra import spectrogram as spectrogram


def __getattr__(name: str) -> object:
    """Raises AttributeError, which says of torchaudio's functions that are not here why."""
    raise missing.error("functional", name, missing.FUNCTIONS)
