"""datasets, tokenizers and safetensors: rows as tensors in batches, words as numbers, tensors in files."""

import tempfile

import numpy as np
import torch
from datasets import Dataset, DatasetDict, concatenate_datasets, load_dataset, load_from_disk
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling, DataCollatorWithPadding, PreTrainedTokenizerFast

texts = ["The cat sat on the mat.", "A dog ran up the hill!", "It was a big red dog, and the cat ran.", "Small cats sat on a hill."] * 4
core = Tokenizer(models.BPE(unk_token="[UNK]"))
core.normalizer, core.pre_tokenizer, core.decoder = normalizers.Lowercase(), pre_tokenizers.Whitespace(), decoders.BPEDecoder()
core.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=60, special_tokens=["[PAD]", "[UNK]", "[MASK]"], show_progress=False))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")
batch = tokenizer(texts[:3], padding=True, return_tensors="pt")
print("words", tuple(batch["input_ids"].shape), str(batch["input_ids"].dtype).rpartition(".")[2], batch["attention_mask"].sum().item())
print("moved", batch.to("cpu")["input_ids"].device.type, batch["input_ids"][0, :5].tolist())

rows = Dataset.from_dict({"text": texts, "label": [i % 2 for i in range(16)], "x": np.arange(48.0).reshape(16, 3).tolist()})
rows = rows.map(lambda r: tokenizer(r["text"]), batched=True).filter(lambda r: len(r["input_ids"]) > 6)
print("rows", len(rows), sorted(rows.column_names))
tensors = rows.with_format("torch", columns=["x", "label"])
first = tensors[0]
print("one", {k: (tuple(v.shape), str(v.dtype).rpartition(".")[2]) for k, v in sorted(first.items())}, tensors[:4]["x"].sum().item())
loader = DataLoader(tensors, batch_size=5)
print("batches", [(tuple(b["x"].shape), b["label"].sum().item(), round(float(b["x"].mean()), 3)) for b in loader])
padded = DataLoader(
    rows.remove_columns(["text", "x", "token_type_ids"] if "token_type_ids" in rows.column_names else ["text", "x"]),
    batch_size=4,
    collate_fn=DataCollatorWithPadding(tokenizer),
)
print("padded", [(tuple(b["input_ids"].shape), b["labels"].tolist()) for b in padded])
torch.manual_seed(0)
masked = DataCollatorForLanguageModeling(tokenizer, mlm=True, mlm_probability=0.3)([{"input_ids": r} for r in rows["input_ids"][:4]])
print("masked", bool((masked["labels"] != -100).sum() > 0), tuple(masked["input_ids"].shape) == tuple(masked["labels"].shape))
stream = rows.to_iterable_dataset(num_shards=2).with_format("torch")
print("streamed", sum(1 for _ in stream), next(iter(stream))["x"].tolist())
with tempfile.TemporaryDirectory() as folder:
    DatasetDict(train=rows, test=rows.select(range(2))).save_to_disk(folder)
    back = load_from_disk(folder)
    print(
        "disk",
        len(back["train"]),
        len(concatenate_datasets([back["train"], back["test"]])),
        rows.train_test_split(0.25, seed=0)["test"].num_rows,
    )
    rows.select(range(3)).to_json(f"{folder}/rows.json")
    told = load_dataset("json", data_files=f"{folder}/rows.json", split="train", cache_dir=f"{folder}/cache").with_format("torch")
    print("json", told["label"][:].tolist(), told[1]["x"].tolist())

    weights = {
        "a": torch.arange(6.0).view(2, 3),
        "b": torch.ones(4, dtype=torch.bfloat16),
        "c": torch.tensor([1, 2]),
        "d": torch.tensor(True),
    }
    save_file(weights, f"{folder}/w.safetensors", metadata={"format": "pt"})
    read = load_file(f"{folder}/w.safetensors")
    print("files", all(torch.equal(read[k], v) and read[k].dtype == v.dtype for k, v in weights.items()), sorted(load(save(weights))))
    with safe_open(f"{folder}/w.safetensors", framework="pt", device="cpu") as file:
        print("part", sorted(file.keys()), file.get_slice("a")[:, 1:].tolist(), file.metadata())
    tied = torch.nn.ModuleDict({"one": torch.nn.Linear(3, 3), "two": torch.nn.Linear(3, 3)})
    tied["two"].weight = tied["one"].weight
    save_model(tied, f"{folder}/tied.safetensors")
    fresh = torch.nn.ModuleDict({"one": torch.nn.Linear(3, 3), "two": torch.nn.Linear(3, 3)})
    fresh["two"].weight = fresh["one"].weight
    print("tied", load_model(fresh, f"{folder}/tied.safetensors"), torch.equal(fresh["two"].weight, tied["one"].weight))
