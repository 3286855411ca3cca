"""Examples of the page of layers, one for each heading; they are run with those of docstrings."""

EXAMPLES = {
    "Modules and containers": """
>>> class Net(nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.hidden, self.out = nn.Linear(4, 8), nn.Linear(8, 2)
...
...     def forward(self, x):
...         return self.out(self.hidden(x).relu())
>>> net = Net()
>>> net(tt.randn(5, 4)).shape
tritensor.Size([5, 2])
>>> [name for name, _ in net.named_parameters()]
['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
>>> nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))(tt.randn(5, 4)).shape
tritensor.Size([5, 2])
""",
    "Linear, flatten": """
>>> classify = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))
>>> classify(tt.randn(64, 1, 28, 28)).shape
tritensor.Size([64, 10])
""",
    "Activations": """
>>> nn.LeakyReLU(0.1)(tt.tensor([-1.0, 0.0, 2.0]))
tensor([-0.1000,  0.0000,  2.0000])
>>> nn.Softmax(dim=-1)(tt.zeros(4))
tensor([0.2500, 0.2500, 0.2500, 0.2500])
""",
    "Losses": """
>>> scores = tt.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
>>> loss = nn.CrossEntropyLoss()(scores, tt.tensor([0, 1]))
>>> loss.backward()
>>> loss.detach(), scores.grad
(tensor(0.2201), tensor([[-0.0596,  0.0596],
        [ 0.1345, -0.1345]]))
""",
    "Convolutions": """
>>> images = tt.randn(8, 3, 32, 32)
>>> halved = nn.Conv2d(3, 16, kernel_size=3, stride=2, padding=1)(images)
>>> halved.shape
tritensor.Size([8, 16, 16, 16])
>>> nn.ConvTranspose2d(16, 3, kernel_size=2, stride=2)(halved).shape
tritensor.Size([8, 3, 32, 32])
""",
    "Pooling": """
>>> nn.MaxPool2d(2)(tt.arange(16.0).reshape(1, 4, 4))
tensor([[[ 5.,  7.],
         [13., 15.]]])
>>> nn.AdaptiveAvgPool2d(1)(tt.randn(8, 16, 7, 5)).shape
tritensor.Size([8, 16, 1, 1])
""",
    "Normalisation": """
>>> norm = nn.BatchNorm1d(2)
>>> norm(tt.tensor([[1.0, 10.0], [3.0, 30.0]])).detach()
tensor([[-1.0000, -1.0000],
        [ 1.0000,  1.0000]])
>>> norm.running_mean  # a tenth of the way; norm.eval() uses it
tensor([0.2000, 2.0000])
>>> nn.LayerNorm(3)(tt.tensor([1.0, 2.0, 3.0])).detach()
tensor([-1.2247,  0.0000,  1.2247])
""",
    "Dropout": """
>>> dropout = nn.Dropout(0.5)
>>> sorted(set(dropout(tt.ones(100)).tolist()))  # while training
[0.0, 2.0]
>>> dropout.eval()(tt.ones(4))
tensor([1., 1., 1., 1.])
""",
    "Embeddings": """
>>> words = nn.Embedding(10_000, 64, padding_idx=0)
>>> words(tt.tensor([[5, 17, 0], [8, 0, 0]])).shape
tritensor.Size([2, 3, 64])
""",
    "Recurrent": """
>>> lstm = nn.LSTM(input_size=4, hidden_size=8, num_layers=2, batch_first=True)
>>> output, (h, c) = lstm(tt.randn(3, 7, 4))  # 3 sequences of 7
>>> output.shape, h.shape
(tritensor.Size([3, 7, 8]), tritensor.Size([2, 3, 8]))
""",
    "Attention, Transformers": """
>>> attention = nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
>>> x = tt.randn(3, 5, 8)
>>> output, weights = attention(x, x, x)
>>> output.shape, weights.shape
(tritensor.Size([3, 5, 8]), tritensor.Size([3, 5, 5]))
""",
    "Padding": """
>>> nn.ReflectionPad1d(2)(tt.arange(4.0).reshape(1, 4))
tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])
""",
    "Upsampling, pixel shuffles, patches": """
>>> nn.Upsample(scale_factor=2, mode="bilinear")(tt.randn(1, 3, 8, 8)).shape
tritensor.Size([1, 3, 16, 16])
>>> nn.PixelShuffle(2)(tt.randn(1, 12, 8, 8)).shape
tritensor.Size([1, 3, 16, 16])
""",
    "Distances": """
>>> nn.CosineSimilarity(dim=0)(tt.tensor([1.0, 0.0]), tt.tensor([1.0, 1.0]))
tensor(0.7071)
""",
}
