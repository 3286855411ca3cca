"""Normalization by batch, instance, group, layer and neighbouring channels: functions of the front door and of nn.functional."""

from __future__ import annotations

GPU = (
    "T.batch_norm_stats(b, 1e-5)", "T.batch_norm_elemt(b, v, v, v, v, 1e-5)", "T.batch_norm_gather_stats(b, m, m, None, None, 0.1, 1e-5, 3)",
    "T.batch_norm_gather_stats_with_counts(b, m, m, None, None, 0.1, 1e-5, n)", "T.batch_norm_backward_reduce(b, b, v, v, v, True, True, True)",
    "T.batch_norm_backward_elemt(b, b, v, v, v, v, v, n)",
)  # fmt: skip

EXPRESSIONS = [
    *[f"F.batch_norm(b, {a})" for a in (
        "None, None, training=True", "None, None, v, v, True", "None, None, v, None, True, 0.3, 0.1", "v.detach(), v.detach() ** 2", "v.detach(), v.detach() ** 2, v, v, False, 0.1, 0.5",
        "None, None", "v.detach(), None", "v[:2].detach(), v[:2].detach(), training=True", "None, None, v[:2], training=True", "None, None, training=True, eps=0.0", "None, None, training=True, eps=-1.0",
    )],
    "[(r_, F.batch_norm(b, r_, q_, v, v, True, 0.25), q_) for r_, q_ in [(v.detach() * 0, v.detach() ** 2)]]", "F.batch_norm(x, None, None, v, v, True)", "F.batch_norm(x[:1], None, None, training=True)",
    "F.batch_norm(p, None, None, training=True)", "F.batch_norm(p.contiguous(memory_format=T.channels_last), None, None, training=True)", "F.batch_norm(v, None, None, training=True)",
    "F.batch_norm(i, None, None, training=True)", "F.batch_norm(f.reshape(2, 1), None, None, training=True)", "F.batch_norm(b, None, None, v.float(), training=True)", "F.batch_norm(e.reshape(0, 3), None, None, v, v, True)",
    "T.batch_norm(b, v, v, None, None, True, 0.1, 1e-5, True)", "T.batch_norm(b, v, None, v.detach(), v.detach() ** 2, False, 0.1, 1e-5, False)", "T.batch_norm(x[:1], None, None, None, None, True, 0.1, 1e-5, True)",
    "T.batch_norm(b, None, None, None, None, False, 0.1, 1e-5, True)", "T.batch_norm(b, v, v)",
    *[f"F.instance_norm(b, {a})" for a in ("None", "weight=v, bias=v", "None, None, v, None, True, 0.1, 0.5", "v.detach(), v.detach() ** 2, v, v, False", "use_input_stats=False", "weight=v[:2]")],
    "[(r_, F.instance_norm(b, r_, q_, v, v, True, 0.25), q_) for r_, q_ in [(v.detach() * 0, v.detach() ** 2)]]", "F.instance_norm(b[:, :, :1])", "F.instance_norm(p)", "F.instance_norm(x)",
    "T.instance_norm(b, v, v, None, None, True, 0.1, 1e-5, True)", "T.instance_norm(b[:, :, :1], v, v, None, None, True, 0.1, 1e-5, True)", "T.instance_norm(b, None, None, v.detach(), v.detach() ** 2, False, 0.1, 1e-5, True)",
    *[f"F.group_norm(b, {a})" for a in ("1", "3, v, v", "3, v", "1, None, v, 0.5", "2", "1, v[:2]")], "F.group_norm(p, 2)", "F.group_norm(v, 1)", "F.group_norm(x, 1, v, v)", "F.group_norm(x[:1], 3)", "F.group_norm(i, 1)",
    "T.group_norm(b, 3, v, v)", "T.group_norm(b, 1, eps=0.5, cudnn_enabled=False)", "T.group_norm(x, 3)", "T.group_norm(b, 2)",
    *[f"{t}.rms_norm(b, {a})" for t in ("F", "T") for a in ("(3,)", "(3, 3), m", "(3,), v, 0.1", "(3,), eps=0.0", "(2,)", "(), v", "(3,), v[:2]")],
    "F.rms_norm(z, (3,))", "F.rms_norm(f, (2,))", "F.rms_norm(f.half(), (2,))", "F.rms_norm(x, (3,), v.float())", "F.rms_norm(i, (3,))", "T.rms_norm(x, 3)",
    *[f"F.local_response_norm(b, {a})" for a in ("1", "2, 0.1", "3, 0.2, 0.5, 2.0", "5, k=0.5")], "F.local_response_norm(p, 2)", "F.local_response_norm(i.reshape(1, 3, 2), 2)", "F.local_response_norm(x, 2)", "F.local_response_norm(e.reshape(0, 1, 2), 2)",
    "[(T.batch_norm_update_stats(b.detach(), r_, q_, 0.25), r_, q_) for r_, q_ in [(v.detach() * 0, v.detach() ** 2)]]", "T.batch_norm_update_stats(b.detach(), None, None, 0.1)", *GPU,
]  # fmt: skip
# What is otherwise than in PyTorch on purpose: why
MEANT = dict.fromkeys(GPU, "PyTorch has it on GPUs alone")
