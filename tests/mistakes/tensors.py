"""Mistakes with tensors themselves: making, indexing, shaping, computing, types, devices. One a line: function | what the message has to name | the code."""

MAKING = r"""
tensor | ragged | tt.tensor([[1, 2], [3]])
tensor | ragged | tt.tensor([[[1], [2]], [[3]]], device=device)
tensor | dict | tt.tensor({"a": 1})
tensor | 'abc' | tt.tensor("abc")
tensor | list | tt.tensor([object()])
tensor | None | tt.tensor([1.0, None])
tensor | ndarray | tt.tensor(np.array([1, "a", None], dtype=object))
tensor | 2020-01-01 | tt.tensor(np.array(["2020-01-01"], dtype="datetime64[D]"))
tensor | int64 | tt.tensor([2**70])
tensor | 300 | tt.tensor([300], dtype=tt.uint8)
tensor | 'gpu' | tt.tensor([1.0], device="gpu")
requires_grad | int64 | tt.tensor([1, 2], requires_grad=True)
zeros | (-2, 3) | tt.zeros(-2, 3)
zeros | 2.5 | tt.zeros(2.5)
zeros | 'float99' | tt.zeros(2, dtype="float99")
ones | '2' | tt.ones("2", 3)
ones | dtpye | tt.ones(2, 3, dtpye=tt.float32)
full | None | tt.full((2,), None)
full | fill_value | tt.full((2, 3))
full | 300 | tt.full((2,), 300, dtype=tt.uint8)
empty | (2, -1) | tt.empty((2, -1))
eye | -1 | tt.eye(-1)
eye | a str | tt.eye("3")
arange | -1 | tt.arange(0, 5, -1)
arange | a str | tt.arange("5")
linspace | -1 | tt.linspace(0, 1, -1)
linspace | a float | tt.linspace(0, 1, 3.0)
zeros_like | a list | tt.zeros_like([1.0, 2.0])
from_numpy | list | tt.from_numpy([1.0])
from_numpy | object | tt.from_numpy(np.array([None, 1]))
as_tensor | ['a'] | tt.as_tensor(np.array(["a"]))
from_dlpack | int | tt.from_dlpack(5)
meshgrid | (2, 3) | tt.meshgrid(x, v, indexing="ij")
zeros | 'sparse' | tt.zeros(2, layout="sparse")
"""

INDEXING = r"""
getitem | 5 | x[5]
getitem | -3 | x[-3]
getitem | 4 | x[0, 1, 2, 0]
getitem | float | x[0.5]
getitem | str | x["a"]
getitem | float32 | x[v]
getitem | (3,) | x[tt.tensor([True, False, True], device=device)]
getitem | 7 | x[[0, 7]]
getitem | cuda:0 | x.cpu()[i.cuda()]
getitem | (2,) | x[[0, 1], [0, 1, 2]]
getitem | step | x[::0]
getitem | 0-d | x.sum()[0]
setitem | (4,) | x[0] = tt.ones(4, device=device)
setitem | 'a' | x[0] = "a"
setitem | None | x[0, 0] = None
setitem | ragged | x[:] = [[1, 2], [3]]
setitem | 9 | x[9] = 1.0
setitem | 2j | x[0] = 1 + 2j
setitem | 300 | x.to(tt.uint8)[0] = 300
setitem | expanded | tt.ones(1, device=device).expand(3)[:] = tt.ones(3, device=device)
setitem | (5,) | x[mask] = tt.ones(5, device=device)
index_select | float32 | x.index_select(0, tt.ones(2, device=device))
index_select | dim 2 | x.index_select(2, i)
index_select | (2, 3) | tt.index_select(x, 0, n)
gather | (3, 4) | x.gather(1, tt.zeros(3, 4, dtype=tt.int64, device=device))
gather | float32 | x.gather(1, x)
scatter | float64 | x.scatter(0, n[:1] * 0, x[:1].double())
take | float32 | tt.take(x, v)
masked_fill | float32 | x.masked_fill(x, 0.0)
masked_fill | (3,) | x.masked_fill(mask, v)
masked_select | int64 | x.masked_select(n)
where | (2,) | tt.where(mask, x, tt.ones(2, device=device))
where | a str | tt.where("mask", x, x)
take_along_dim | float32 | tt.take_along_dim(x, x, 1)
index_fill | None | x.index_fill(0, i, None)
nonzero | a list | tt.nonzero([1, 0])
iter | 0-d | list(x.sum())
bool | (2, 3) | bool(x)
item | (2, 3) | int(x)
item | (2, 3) | x.item()
len | 0-d | len(x.sum())
index | float32 | [1, 2, 3][v[1]]
"""

SHAPING = r"""
reshape | (4, 2) | x.reshape(4, 2)
reshape | (-1, -1) | x.reshape(-1, -1)
reshape | (-1, 4) | x.reshape(-1, 4)
view | (3, 2) | x.t().view(6)
permute | (0, 0) | x.permute(0, 0)
permute | (0,) | x.permute(0)
transpose | 2 | x.transpose(0, 2)
transpose | 'a' | x.transpose("a", 1)
t | (1, 2, 3) | x[None].t()
mT | (3,) | v.mT
squeeze | 5 | x.squeeze(5)
unsqueeze | 4 | x.unsqueeze(4)
expand | (3, 3) | x.expand(3, 3)
expand | (-2, 3) | x.expand(-2, 3)
flatten | 1 | x.flatten(1, 0)
unflatten | (2, 2) | x.unflatten(1, (2, 2))
movedim | (0, 1) | x.movedim((0, 1), (0, 0))
cat | (2, 4) | tt.cat([x, tt.ones(2, 4, device=device)])
cat | no tensors | tt.cat([])
cat | a str | tt.cat([x, "x"])
cat | 2 | tt.cat([x, x], dim=2)
stack | (3,) | tt.stack([x, v])
stack | an int | tt.stack(5)
split | 0 | x.split(0)
split | [1, 1] | x.split([1, 1], dim=1)
chunk | 0 | x.chunk(0)
chunk | a str | x.chunk("a")
hsplit | 2 | x.hsplit(2)
narrow | 2 | x.narrow(1, 2, 2)
select | 4 | x.select(0, 4)
flip | 3 | x.flip(3)
roll | 'a' | x.roll("a")
rot90 | (0, 0) | x.rot90(1, (0, 0))
repeat | -1 | x.repeat(-1, 2)
repeat_interleave | 2 | x.repeat_interleave(i, dim=1)
tile | 'a' | x.tile("a")
broadcast_to | (2, 2) | tt.broadcast_to(x, (2, 2))
broadcast_tensors | (2,) | tt.broadcast_tensors(x, tt.ones(2, device=device))
diag | (1, 2, 3) | tt.diag(x[None])
diagonal | 0 | x.diagonal(0, 0, 0)
tril | (3,) | tt.tril(v)
as_strided | 100 | x.as_strided((100,), (1,))
unfold | 9 | x.unfold(1, 9, 1)
unbind | 2 | x.unbind(2)
"""

COMPUTING = r"""
add | (2,) | x + tt.ones(2, device=device)
add | None | x + None
add | a str | x.add("1")
sub | bool | mask - mask
sub | (4,) | tt.sub(x, tt.ones(4, device=device))
mul | an object | tt.mul(x, object())
mul | other | tt.mul(x)
add | alhpa | tt.add(x, x, alhpa=2)
add | other | x.add(x, other=x)
div | 'round' | tt.div(x, x, rounding_mode="round")
clamp | min | x.clamp()
clamp | complex64 | z.clamp(min=0)
lt | complex64 | z < z
floor_divide | 0 | n.cpu() // 0
remainder | 0 | n.cpu() % 0
pow | -1 | n ** -1
bitwise_and | float32 | x & x
bitwise_not | float32 | ~x
bitwise_left_shift | float32 | x << 1
sqrt | a list | tt.sqrt([1.0])
exp | a ndarray | tt.exp(np.ones(3, object))
neg | bool | -mask
sum | 2 | x.sum(2)
sum | (0, 0) | x.sum((0, 0))
sum | 'a' | x.sum("a")
sum | axis | x.sum(dim=0, axis=1)
sum | keepdms | x.sum(0, keepdms=True)
mean | int64 | n.mean()
max | (0,) | tt.ones(0, device=device).max()
argmax | 0 | tt.ones(2, 0, device=device).argmax(1)
argmax | 0.5 | x.argmax(0.5)
var | correction | x.var(unbiased=True, correction=1)
std | int64 | n.std()
cumsum | 2 | x.cumsum(2)
any | 5 | mask.any(5)
prod | a list | tt.prod([1, 2])
norm | 'nuke' | tt.norm(x, p="nuke")
logsumexp | 3 | x.logsumexp(3)
softmax | 2 | x.softmax(2)
matmul | (2, 3) | x @ x
matmul | () | x @ x.sum()
matmul | a ndarray | x @ np.ones((3, 2), object)
matmul | a float | tt.matmul(x, 2.0)
mm | (3,) | tt.mm(x, v)
mm | (2, 3) | tt.mm(x, x)
bmm | (2, 3) | tt.bmm(x, x)
mv | (2,) | tt.mv(x, tt.ones(2, device=device))
dot | (2, 3) | tt.dot(x, v)
dot | (4,) | tt.dot(v, tt.ones(4, device=device))
addmm | (2, 3) | tt.addmm(x, x, x)
outer | (2, 3) | tt.outer(x, v)
tensordot | 3 | tt.tensordot(x, x, dims=3)
einsum | ij,jk | tt.einsum("ij,jk->ik", x)
einsum | ij->k | tt.einsum("ij->k", x)
einsum | ijk | tt.einsum("ijk->i", x)
einsum | 'j' | tt.einsum("ij,jk->ik", x, x)
einsum | 'i' | tt.einsum(x, "ij->i")
complex | float64 | tt.complex(x, x.double())
complex | int64 | tt.complex(n, n)
view_as_complex | (2, 3) | tt.view_as_complex(x.cpu())
view_as_real | float32 | tt.view_as_real(x)
imag | float32 | x.imag
fft | 0 | tt.fft.fft(v, n=0)
fft | 'orto' | tt.fft.fft(v.cpu(), norm="orto")
fft | 3 | tt.fft.fft(x, dim=3)
rfft | complex64 | tt.fft.rfft(z)
fft2 | dim -2 | tt.fft.fft2(v)
stft | 49 | tt.stft(v, 99, return_complex=True)
stft | return_complex | tt.stft(v, 2, 1)
istft | float32 | tt.istft(x, 2)
"""

DRAWING = r"""
randn | 'a' | tt.randn("a")
rand | (-1,) | tt.rand(-1)
rand | an int | tt.rand(2, generator=5)
randint | 3 | tt.randint(3, 3, (2,))
randint | high | tt.randint(5)
randperm | -1 | tt.randperm(-1)
normal | -1 | tt.normal(0.0, -1.0, (2,))
bernoulli | 6.0 | tt.bernoulli(x.cpu() + 1)
multinomial | 4 | tt.multinomial(v + 1, 4)
multinomial | weights | tt.multinomial(v - 5, 1)
uniform_ | 2 | x.uniform_(2, 1)
exponential_ | -1 | x.exponential_(-1)
manual_seed | a str | tt.manual_seed("a")
"""
