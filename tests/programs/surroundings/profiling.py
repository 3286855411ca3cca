"""The profiler recipe's shape: a table, ranges, shapes, memory, a trace, a schedule that steps; flops; a timer."""

import contextlib
import io
import json
import os
import tempfile

import torch
import torch.nn as nn
import torch.utils.benchmark as benchmark
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
from torch.utils.flop_counter import FlopCounterMode
from torchvision import models

model = models.resnet18().eval()
inputs = torch.randn(2, 3, 32, 32)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("model_inference"):
        model(inputs)
table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
print([c for c in ("Self CPU", "CPU", "Calls", "Name") if c not in table])
print("model_inference" in table, "Self CPU time total" in table)
rows = {e.key: e for e in prof.key_averages()}
print(rows["model_inference"].count, rows["model_inference"].cpu_time_total > 0, rows["model_inference"].self_cpu_time_total >= 0)
print(sum(e.count for k, e in rows.items() if k.replace("aten::", "") == "conv2d"))
shaped = prof.key_averages(group_by_input_shape=True)
print("[2, 3, 32, 32]" in shaped.table(sort_by="cpu_time_total", row_limit=50))
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as prof:
    model(inputs)
text = prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=10)
print("Mem" in text)
where = tempfile.mkdtemp()
prof.export_chrome_trace(os.path.join(where, "trace.json"))
trace = json.load(open(os.path.join(where, "trace.json")))
print("traceEvents" in trace, any(e.get("ph") == "X" for e in trace["traceEvents"]))
with profile(
    activities=[ProfilerActivity.CPU], with_stack=True, experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True)
) as prof:
    model(inputs)
print("Self CPU" in prof.key_averages(group_by_stack_n=2).table(sort_by="self_cpu_time_total", row_limit=2))
sort_by_keyword = "self_" + "cpu" + "_time_total"
seen = []


def trace_handler(p):
    output = p.key_averages().table(sort_by=sort_by_keyword, row_limit=10)
    seen.append(len(output) > 100)
    p.export_chrome_trace(os.path.join(where, "trace_" + str(p.step_num) + ".json"))


my_schedule = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
print([my_schedule(i).name for i in range(11)])
with profile(activities=[ProfilerActivity.CPU], schedule=my_schedule, on_trace_ready=trace_handler) as p:
    for idx in range(10):
        model(inputs)
        p.step()
print(seen, sorted(f for f in os.listdir(where) if f.startswith("trace_")))
with profile(
    schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=tensorboard_trace_handler(os.path.join(where, "log"), worker_name="w")
) as p:
    for step in range(3):
        model(inputs)
        p.step()
print(len(os.listdir(os.path.join(where, "log"))), os.listdir(os.path.join(where, "log"))[0].endswith(".pt.trace.json"))
with torch.autograd.profiler.profile() as prof:
    y = model(inputs).sum()
    y.backward()
print(any("Backward" in e.key for e in prof.key_averages()), prof.self_cpu_time_total > 0)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 4))

    def forward(self, x):
        return self.body(x)


small = Small()
x = torch.randn(5, 3, 8, 8)
counter = FlopCounterMode(display=False)
with counter:
    small(x)
print(counter.get_total_flops())
with FlopCounterMode(small, display=False) as counter:
    small(x).sum().backward()
print(counter.get_total_flops(), sorted((k, sum(v.values())) for k, v in counter.get_flop_counts().items()))
t0 = benchmark.Timer(
    stmt="batched_dot_mul_sum(x, x)", setup="from __main__ import batched_dot_mul_sum", globals={"x": torch.randn(100, 64)}
)
t1 = benchmark.Timer(
    stmt="batched_dot_bmm(x, x)",
    setup="from __main__ import batched_dot_bmm",
    globals={"x": torch.randn(100, 64)},
    label="Dot",
    sub_label="bmm",
    description="mine",
    num_threads=1,
)


def batched_dot_mul_sum(a, b):
    return a.mul(b).sum(-1)


def batched_dot_bmm(a, b):
    a = a.reshape(-1, 1, a.shape[-1])
    b = b.reshape(-1, b.shape[-1], 1)
    return torch.bmm(a, b).flatten(-3)


m0, m1 = t0.timeit(20), t1.blocked_autorange(min_run_time=0.02)
print(str(m0).splitlines()[0].split(" object")[0], str(m0).splitlines()[1])
print(m1.mean > 0, m1.median > 0, m1.iqr >= 0, m1.number_per_run > 0)
compare = benchmark.Compare([m1])
with contextlib.redirect_stdout(io.StringIO()) as out:
    compare.trim_significant_figures()
    compare.colorize()
    compare.print()
print("Dot" in out.getvalue(), "bmm" in out.getvalue(), "Times are in" in out.getvalue())
