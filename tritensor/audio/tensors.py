"""Functions of tensors that audio is made of, by their public names."""

from __future__ import annotations

from typing import Any

from tritensor.tensor.public_api.publish import namespaces, public

arange: Any = public["arange"]
as_tensor: Any = public["as_tensor"]
cat: Any = public["cat"]
hann_window: Any = public["hann_window"]
i0: Any = public["i0"]
istft: Any = public["istft"]
linspace: Any = public["linspace"]
matmul: Any = public["matmul"]
maximum: Any = public["maximum"]
minimum: Any = public["minimum"]
ones: Any = public["ones"]
polar: Any = public["polar"]
rand: Any = public["rand"]
randint: Any = public["randint"]
stack: Any = public["stack"]
stft: Any = public["stft"]
tensor: Any = public["tensor"]
where: Any = public["where"]
zeros: Any = public["zeros"]
rfft: Any = namespaces["fft"]["rfft"]
irfft: Any = namespaces["fft"]["irfft"]
eigvals: Any = namespaces["linalg"]["eigvals"]
lstsq: Any = namespaces["linalg"]["lstsq"]
