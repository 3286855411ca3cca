"""trl: SFTTrainer and DPOTrainer on a small Llama and a tokenizer of a few words, with LoRA and without."""

import tempfile
import zlib

import numpy as np
import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import SequentialSampler
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, PrinterCallback
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

torch.manual_seed(0)
WORDS = ["the", "cat", "dog", "sat", "ran", "on", "a", "mat", "hill", "and", "then", "it", "was", "red", "blue", "big", "small"]
vocabulary = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>", "<unk>", *WORDS])}
core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>")
drawn = np.random.RandomState(0)
texts = [" ".join(drawn.choice(WORDS, 8)) for _ in range(32)]


def fresh():
    """A Llama with weights that depend on the parameters' names alone."""
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24,
            max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        )
    )  # fmt: skip
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1), dtype=p.dtype))
    return model


class InOrder:
    """Takes the rows in their order, so that two libraries take the same."""

    def _get_train_sampler(self, train_dataset=None):
        return SequentialSampler(train_dataset if train_dataset is not None else self.train_dataset)


class SFT(InOrder, SFTTrainer):
    pass


class DPO(InOrder, DPOTrainer):
    pass


SETTINGS = {
    "per_device_train_batch_size": 4, "max_steps": 6, "logging_steps": 3, "learning_rate": 1e-2, "report_to": [], "use_cpu": True, "bf16": False,
    "disable_tqdm": True, "save_strategy": "no", "gradient_checkpointing": False,
}  # fmt: skip


def told(trainer, keys):
    """What a run logged, in numbers that do not tell times."""
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return [[round(e[k], 3) for k in keys if k in e] for e in trainer.state.log_history if "loss" in e]


plain = Dataset.from_dict({"text": texts})
asked = Dataset.from_dict({"prompt": [t.rsplit(" ", 3)[0] for t in texts], "completion": [" " + " ".join(t.split()[-3:]) for t in texts]})
pairs = asked.rename_column("completion", "chosen").add_column("rejected", [" " + " ".join(t.split()[:3]) for t in texts])
KEYS = ("loss", "grad_norm", "mean_token_accuracy", "num_tokens")
with tempfile.TemporaryDirectory() as folder:
    trainer = SFT(model=fresh(), args=SFTConfig(folder, **SETTINGS), train_dataset=plain, processing_class=tokenizer)
    print("text", told(trainer, KEYS))
    trainer.save_model(f"{folder}/model")
    loaded = LlamaForCausalLM.from_pretrained(f"{folder}/model")
    ids = tokenizer("the cat sat on a", return_tensors="pt")["input_ids"]
    print("greedy", tokenizer.decode(loaded.generate(ids, max_new_tokens=4, do_sample=False)[0]))
with tempfile.TemporaryDirectory() as folder:
    trainer = SFT(
        model=fresh(), args=SFTConfig(folder, packing=True, max_length=16, **SETTINGS), train_dataset=plain, processing_class=tokenizer
    )
    print("packed", told(trainer, KEYS))
with tempfile.TemporaryDirectory() as folder:
    adapter = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], init_lora_weights=True)
    settings = SFTConfig(folder, completion_only_loss=True, gradient_accumulation_steps=2, **SETTINGS)
    trainer = SFT(model=fresh(), args=settings, train_dataset=asked, processing_class=tokenizer, peft_config=adapter)
    frozen = trainer.model.base_model.model.model.layers[0].mlp.up_proj.weight.clone()
    losses = told(trainer, ("loss",))
    print("LoRA", len(losses), losses[0][0] > 0, torch.equal(frozen, trainer.model.base_model.model.model.layers[0].mlp.up_proj.weight))
with tempfile.TemporaryDirectory() as folder:
    trainer = DPO(
        model=fresh(), ref_model=fresh(), args=DPOConfig(folder, beta=0.1, **SETTINGS), train_dataset=pairs, processing_class=tokenizer
    )
    print("DPO", told(trainer, ("loss", "grad_norm", "rewards/accuracies", "rewards/margins")))
