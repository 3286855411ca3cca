"""Functions of one's own: saved tensors, double backward, a straight-through estimator, setup_context, gradcheck."""

import math

import torch
from torch.autograd import Function, gradcheck, gradgradcheck


class LegendrePolynomial3(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Exp(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.mark_non_differentiable()
        ctx.levels = levels
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad):
        return grad.clone(), None


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        gi = gw = gb = None
        if ctx.needs_input_grad[0]:
            gi = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            gw = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            gb = grad_output.sum(0)
        return gi, gw, gb


x = torch.linspace(-1, 1, 7, dtype=torch.float64, requires_grad=True)
y = LegendrePolynomial3.apply(x)
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x)
print([round(v, 3) for v in g.tolist()], [round(v, 3) for v in h.tolist()])
print(gradcheck(LegendrePolynomial3.apply, (x,)), gradgradcheck(Exp.apply, (x,)))
a, w, b = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((4, 3), (2, 3), (2,)))
print(gradcheck(LinearFunction.apply, (a, w, b), eps=1e-6, atol=1e-4), gradgradcheck(LinearFunction.apply, (a, w, b)))
z = torch.tensor([0.24, 0.26], requires_grad=True)
RoundSTE.apply(z, 2).pow(2).sum().backward()
print(z.grad.tolist(), RoundSTE.apply(z, 2).tolist())
seen = []
u = torch.ones(3, requires_grad=True)
v = u * 2
v.register_hook(lambda g: seen.append(g.sum().item()) or g * 10)
v.retain_grad()
u.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad[0].item()))
v.sum().backward()
print(seen, u.grad.tolist(), v.grad.tolist(), v.grad_fn.name())
with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append("pack") or t.numpy(), lambda t: torch.from_numpy(t)):
    s = (torch.ones(2, requires_grad=True) ** 2).sum()
print(seen.count("pack") >= 1, s.item(), round(math.e, 2))
