"""torch.cuda at the top of every PyTorch training script, with only the import changed."""

from __future__ import annotations

import tritensor as torch


def test_choosing_a_device_and_a_type() -> None:
    assert torch.cuda.is_available()
    torch.cuda.init()
    assert torch.cuda.is_initialized()
    assert torch.cuda.device_count() >= 1
    assert torch.cuda.current_device() == 0
    assert isinstance(torch.cuda.get_device_name(0), str)
    assert torch.cuda.get_device_properties("cuda:0").total_memory > 0
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    assert torch.zeros(2, device="cuda", dtype=dtype).dtype == dtype
    with torch.cuda.device(0) as chosen:
        assert torch.ones(2, device="cuda").device == torch.device("cuda", 0)
    assert chosen.idx == torch.cuda.device("cuda:0").idx == 0


def test_seeds() -> None:
    torch.cuda.manual_seed_all(5)
    a = torch.rand(4, device="cuda")
    torch.cuda.manual_seed(5)
    assert torch.rand(4, device="cuda").tolist() == a.tolist()
    assert torch.cuda.initial_seed() == 5
    state = torch.cuda.get_rng_state()
    b = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.rand(4, device="cuda").tolist() == b.tolist()
    assert torch.cuda.seed() == torch.initial_seed()


def test_timing_with_events() -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    y = torch.ones(8, device="cuda") * 2
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0
    assert y.sum().item() == 16


def test_watching_memory() -> None:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 18, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 1 << 20
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    del x
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == before
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def test_a_side_stream() -> None:
    side = torch.cuda.Stream()
    x = torch.arange(4, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x + 1
    torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())
    assert y.tolist() == [1, 2, 3, 4]


def test_a_model_moves_with_its_batch() -> None:
    model = torch.nn.Linear(3, 2).to("cuda", non_blocking=True)
    batch = torch.ones(4, 3).pin_memory().to("cuda", non_blocking=True)
    model(batch).sum().backward()
    assert model.weight.grad.tolist() == [[4.0] * 3] * 2
    assert model.cpu().weight.device.type == "cpu"
