"""Linear regression with nn.Linear and SGD, in the style of the first tutorials."""

import numpy as np
import torch
import torch.nn as nn

x_train = np.array(
    [[3.3], [4.4], [5.5], [6.71], [6.93], [4.168], [9.779], [6.182], [7.59], [2.167], [7.042], [10.791], [5.313], [7.997], [3.1]],
    dtype=np.float32,
)
y_train = np.array(
    [[1.7], [2.76], [2.09], [3.19], [1.694], [1.573], [3.366], [2.596], [2.53], [1.221], [2.827], [3.465], [1.65], [2.904], [1.3]],
    dtype=np.float32,
)

model = nn.Linear(1, 1)
with torch.no_grad():
    model.weight.fill_(0.5)
    model.bias.zero_()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

for epoch in range(60):
    inputs = torch.from_numpy(x_train)
    targets = torch.from_numpy(y_train)
    outputs = model(inputs)
    loss = criterion(outputs, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (epoch + 1) % 20 == 0:
        print("Epoch [{}/{}], Loss: {:.4f}".format(epoch + 1, 60, loss.item()))

predicted = model(torch.from_numpy(x_train)).detach().numpy()
print(predicted.shape, predicted.dtype, round(float(predicted.sum()), 3))
print(list(model.state_dict().keys()), [tuple(p.shape) for p in model.parameters()])
