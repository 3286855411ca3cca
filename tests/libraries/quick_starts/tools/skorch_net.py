"""skorch: a network as a scikit-learn estimator: fit, predict, callbacks, grid search, save and load."""

import tempfile

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import Checkpoint, EarlyStopping, EpochScoring, LRScheduler
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 6)).astype(np.float32)
y = (X[:, 0] + X[:, 1] ** 2 > 0.7).astype(np.int64)


class Net(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.first, self.second = nn.Linear(6, hidden), nn.Linear(hidden, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                values = np.random.default_rng(parameter.numel()).standard_normal(tuple(parameter.shape)) * 0.3
                parameter.copy_(torch.tensor(values.astype(np.float32)))

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


net = NeuralNetClassifier(
    Net, criterion=nn.CrossEntropyLoss, max_epochs=6, lr=0.3, batch_size=50, iterator_train__shuffle=False, verbose=0, train_split=None
)
net.fit(X, y)
print("losses", [round(row["train_loss"], 4) for row in net.history])
print("probabilities", [round(float(p), 4) for p in net.predict_proba(X[:3])[:, 1]], "accuracy", round(net.score(X, y), 3))
folder = tempfile.mkdtemp()
net.save_params(f_params=folder + "/net.pt", f_optimizer=folder + "/opt.pt", f_history=folder + "/history.json")
other = NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss).initialize()
other.load_params(f_params=folder + "/net.pt")
print("loaded agrees", bool(np.allclose(other.predict_proba(X), net.predict_proba(X))))

callbacks = [
    EpochScoring("accuracy", lower_is_better=False),
    EarlyStopping(patience=3),
    LRScheduler("StepLR", step_size=2),
    Checkpoint(dirname=folder),
]
watched = NeuralNetClassifier(
    Net, criterion=nn.CrossEntropyLoss, max_epochs=8, lr=0.2, verbose=0, callbacks=callbacks, iterator_train__shuffle=False
)
watched.fit(X, y)
print(
    "watched falls", watched.history[-1, "valid_loss"] < watched.history[0, "valid_loss"], "rates", round(watched.history[2, "event_lr"], 4)
)
pipe = make_pipeline(
    StandardScaler(), NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss, max_epochs=2, lr=0.2, verbose=0, train_split=None)
)
search = GridSearchCV(pipe, {"neuralnetclassifier__module__hidden": [4, 8]}, cv=2, scoring="accuracy").fit(X, y)
print("searched", sorted(search.best_params_), search.best_score_ > 0.4)


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(6, 1))

    def forward(self, x):
        return x @ self.weight


line = NeuralNetRegressor(Line, max_epochs=20, lr=0.1, batch_size=-1, verbose=0, train_split=None, optimizer=torch.optim.Adam)
line.fit(X, X[:, :1] * 2.0 - X[:, 3:4])
print("line", [round(float(w), 3) for w in line.module_.weight.detach().numpy()[:, 0]])
