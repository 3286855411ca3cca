"""Fourier transforms and short-time spectra."""

from __future__ import annotations

_COMPLEX = ("fft", "ifft", "irfft", "hfft")
_REAL = ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft")
_SEVERAL = ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn", "hfft2", "hfftn")
_SEVERAL_REAL = ("fft2", "rfft2", "rfftn", "ihfft2", "ihfftn", "irfftn", "hfft2")
EXPRESSIONS = [
    *[f"T.fft.{f}(z{o})" for f in _COMPLEX for o in ("", ", 2", ", n=5", ", dim=0", ", norm='ortho'", ", norm='forward'", ", 0", ", dim=2", ", norm='x'")],
    *[f"T.fft.{f}(x{o})" for f in _REAL for o in ("", ", 4", ", dim=0", ", norm='ortho'", ", norm='forward'")],
    *[f"T.fft.{f}(z{o})" for f in _SEVERAL for o in ("", ", (2, 4)", ", dim=(1, 0)", ", norm='ortho'", ", s=(2,)", ", dim=(0, 0)")],
    *[f"T.fft.{f}(b{o})" for f in _SEVERAL_REAL for o in ("", ", (2, 4)", ", dim=(0, 2)", ", norm='forward'", ", s=(-1, 5)")],
    *[f"T.fft.{f}(i)" for f in ("fft", "rfft", "fft2", "rfftn")], *[f"T.fft.{f}(z)" for f in ("rfft", "ihfft", "rfft2", "ihfftn")],
    "T.fft.fft(x.half())", "T.fft.fft(o)", "T.fft.fft(e)", "T.fft.fft(k)", "T.fft.fft(f)", "T.fft.fft(v).abs().sum()", "T.fft.rfft(f)",
    "T.fft.fftfreq(5)", "T.fft.fftfreq(4, 0.5)", "T.fft.fftfreq(4, d=2, dtype=T.float64)", "T.fft.rfftfreq(5)", "T.fft.rfftfreq(4, 0.1)", "T.fft.fftfreq(0)",
    "T.fft.fftshift(x)", "T.fft.fftshift(x, 1)", "T.fft.fftshift(x, (0, 1))", "T.fft.ifftshift(x)", "T.fft.ifftshift(x, dim=-1)", "T.fft.fftshift(v)", "T.fft.ifftshift(v)",
    "T.stft(p.flatten(), 8, return_complex=True, window=y.flatten()[:4].repeat(2))", "T.stft(p.flatten(), 8, 3, 6, y.flatten(), return_complex=True)",
    "T.stft(p.flatten(), 8, 3, 6, y.flatten(), False, return_complex=True)", "T.stft(p.flatten(), 8, 3, 6, y.flatten(), False, return_complex=True, align_to_window=True)",
    "T.stft(p.flatten(), 8, window=T.ones(8, dtype=T.float64), return_complex=False)", "T.stft(p.flatten(), 8, window=T.ones(8, dtype=T.float64))",
    "T.stft(p.reshape(2, 25), 8, 2, window=T.ones(8, dtype=T.float64), normalized=True, onesided=False, return_complex=True)",
    *[f"T.stft(p.reshape(2, 25), 6, 2, 6, y.flatten(), pad_mode='{mode}', return_complex=True)" for mode in ("constant", "replicate", "circular", "reflect")],
    "T.stft(x, 8, window=T.ones(8, dtype=T.float64), return_complex=True)", "T.stft(b, 2, window=T.ones(2, dtype=T.float64), return_complex=True)",
    "p.flatten().stft(8, window=T.ones(8, dtype=T.float64), return_complex=True).istft(8, window=T.ones(8, dtype=T.float64))",
    "T.istft(T.stft(p.flatten(), 6, 2, 6, y.flatten(), return_complex=True), 6, 2, 6, y.flatten(), length=48)", "T.istft(x, 4, window=T.ones(4, dtype=T.float64))",
    "T.istft(T.stft(p.flatten(), 6, 2, 6, y.flatten(), False, return_complex=True), 6, 2, 6, y.flatten(), center=False)",
    "T.fft.irfft(z[0, :0], 2)", "T.fft.hfft(z[:, :0], 4)",
    "T.istft(z, 2, window=T.ones(2, dtype=T.float64))", "T.istft(z, 3, window=T.ones(3, dtype=T.float64))",
]  # fmt: skip
ON_CPU = True
# What is otherwise than in PyTorch on purpose: why
MEANT = dict.fromkeys(
    (f"T.fft.{f}(b, dim=(0, 2))" for f in ("rfft2", "rfftn")),
    "the dims that are not transformed lie by their strides among those that are; PyTorch lays them outside",
)
