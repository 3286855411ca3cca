"""DeepFM with a cross network on categorical fields, in float64 by default; the best weights pickled; results of several parts printed."""

import pickle
import copy
import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


class FeaturesLinear(torch.nn.Module):
    def __init__(self, field_dims, output_dim=1):
        super().__init__()
        self.fc = torch.nn.Embedding(sum(field_dims), output_dim)
        self.bias = torch.nn.Parameter(torch.zeros((output_dim,)))
        self.offsets = np.array((0, *np.cumsum(field_dims)[:-1]), dtype=np.int64)

    def forward(self, x):
        x = x + x.new_tensor(self.offsets).unsqueeze(0)
        return torch.sum(self.fc(x), dim=1) + self.bias


class FactorizationMachine(torch.nn.Module):
    def __init__(self, reduce_sum=True):
        super().__init__()
        self.reduce_sum = reduce_sum

    def forward(self, x):
        square_of_sum = torch.sum(x, dim=1) ** 2
        sum_of_square = torch.sum(x**2, dim=1)
        ix = square_of_sum - sum_of_square
        if self.reduce_sum:
            ix = torch.sum(ix, dim=1, keepdim=True)
        return 0.5 * ix


class CrossNetwork(torch.nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.w = torch.nn.ModuleList([torch.nn.Linear(d, 1, bias=False) for _ in range(n)])
        self.b = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros((d,))) for _ in range(n)])

    def forward(self, x):
        x0 = x
        for w, b in zip(self.w, self.b):
            x = x0 * w(x) + b + x
        return x


class DeepFM(torch.nn.Module):
    def __init__(self, field_dims, embed_dim=4, mlp_dims=(8, 4)):
        super().__init__()
        self.linear, self.fm = FeaturesLinear(field_dims), FactorizationMachine()
        self.embedding = torch.nn.Embedding(sum(field_dims), embed_dim)
        self.offsets = self.linear.offsets
        d = len(field_dims) * embed_dim
        self.cross = CrossNetwork(d, 2)
        layers, i = [], d
        for o in mlp_dims:
            layers.extend([torch.nn.Linear(i, o), torch.nn.BatchNorm1d(o), torch.nn.ReLU(), torch.nn.Dropout(p=0.0)])
            i = o
        layers.append(torch.nn.Linear(i + 0, 1))
        self.mlp = torch.nn.Sequential(*layers)
        self.out = torch.nn.Linear(d, 1)

    def forward(self, x):
        e = self.embedding(x + x.new_tensor(self.offsets))
        flat = e.view(-1, e.size(1) * e.size(2))
        return torch.sigmoid((self.linear(x) + self.fm(e) + self.mlp(flat) + self.out(self.cross(flat))).squeeze(1))


rs = np.random.RandomState(21)
dims = [5, 7, 3]
X = np.stack([rs.randint(0, d, 200) for d in dims], 1)
y = ((X[:, 0] % 2) ^ (X[:, 1] > 3)).astype(np.float64)
Xt, yt = torch.from_numpy(X), torch.from_numpy(y)
model = DeepFM(np.array(dims))
for n, p in model.named_parameters():
    if "mlp.1." in n or "mlp.5." in n:
        continue
    p.data = torch.from_numpy(rs.randn(*p.shape) * 0.2)
print(model.cross, torch.get_default_dtype(), sorted({str(v.dtype) for v in model.state_dict().values()}))
opt = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=1e-6)
crit = torch.nn.BCELoss()
best = None
for epoch in range(6):
    model.train()
    for xb, yb in zip(Xt[:160].split(40), yt[:160].split(40)):
        loss = crit(model(xb), yb)
        model.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        pr = model(Xt[160:])
        lg = F.binary_cross_entropy(pr, yt[160:]).item()
        t = yt[160:].bool()
        auc = ((pr[t][:, None] > pr[~t]).double() + 0.5 * (pr[t][:, None] == pr[~t]).double()).mean()
    print(epoch, f"{loss.item():.6f} logloss {lg:.6f} auc {auc.item():.4f}")
    if best is None or lg < best[0]:
        best = (lg, copy.deepcopy(model.state_dict()))
blob = pickle.dumps({k: v.numpy() for k, v in best[1].items()})
model.load_state_dict({k: torch.from_numpy(v) if v.ndim else torch.tensor(v) for k, v in pickle.loads(blob).items()})
m2 = pickle.loads(pickle.dumps(model))
with torch.no_grad():
    print(torch.equal(m2(Xt[:5]), model(Xt[:5])), m2(Xt[:3]))
print(model.mlp[1].num_batches_tracked, model.mlp[1].running_var[:3], torch.tensor(1.5), torch.tensor([1, 2]) / 2, torch.ones(2).dtype)
imp = torch.autograd.grad(model(Xt[:8]).sum(), model.embedding.weight)[0].norm(dim=1)
print(imp.topk(3), torch.histc(pr, bins=5, min=0, max=1))
print(torch.zeros(()).new_full((2,), 3), torch.arange(3.0), torch.get_default_dtype().itemsize, torch.finfo().eps)
torch.set_default_dtype(torch.float32)
