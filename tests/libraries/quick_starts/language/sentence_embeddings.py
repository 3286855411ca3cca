"""sentence-transformers: a small BERT gives sentences places, learned from pairs, searched, saved and loaded."""

import tempfile
import zlib

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import (
    CrossEncoder,
    InputExample,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
    models,
    util,
)
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers import models as token_models
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, PrinterCallback

torch.manual_seed(0)
WORDS = ["the", "cat", "dog", "sat", "ran", "on", "a", "mat", "hill", "and", "then", "it", "was", "red", "blue", "big", "small"]
vocabulary = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
core = Tokenizer(token_models.WordLevel(vocabulary, unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.Whitespace()
core.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", [("[CLS]", 2), ("[SEP]", 3)])
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", model_max_length=32
)
drawn = np.random.RandomState(0)
texts = [" ".join(drawn.choice(WORDS, 6)) for _ in range(24)]


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model


with tempfile.TemporaryDirectory() as folder:
    bert = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, max_position_embeddings=32,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    fill(BertModel(bert)).save_pretrained(f"{folder}/bert")
    tokenizer.save_pretrained(f"{folder}/bert")
    word = models.Transformer(f"{folder}/bert", max_seq_length=16)
    model = SentenceTransformer(
        modules=[word, models.Pooling(16, pooling_mode="mean"), fill(models.Dense(16, 8)), models.Normalize()], device="cpu"
    )
    places = model.encode(texts, batch_size=5, convert_to_tensor=True, show_progress_bar=False)
    print("encoded", tuple(places.shape), round(float(places.abs().sum()), 4), type(model.encode("the cat")).__name__)
    print("similar", [round(x, 3) for x in model.similarity(places[:2], places[:4]).flatten().tolist()])
    print("found", [(h["corpus_id"], round(h["score"], 3)) for h in util.semantic_search(places[:1], places, top_k=3)[0]])
    judge = EmbeddingSimilarityEvaluator(texts[:8], texts[8:16], [i / 8 for i in range(8)])
    print("judged", {k.split("_")[0]: round(v, 3) for k, v in judge(model).items()})

    for kind, loss, columns in (
        ("ranking", losses.MultipleNegativesRankingLoss(model), {"anchor": texts[:12], "positive": texts[12:]}),
        ("cosine", losses.CosineSimilarityLoss(model), {"a": texts[:12], "b": texts[12:], "score": [i / 12 for i in range(12)]}),
        ("triplet", losses.TripletLoss(model), {"a": texts[:8], "p": texts[8:16], "n": texts[16:]}),
    ):
        loader = DataLoader([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], batch_size=4)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        steps = []
        for batch in loader:
            features = [model.tokenize(batch[c]) for c in columns if c != "score"]
            value = loss(features, batch["score"].float() if "score" in batch else None)
            value.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps.append(round(float(value), 3))
        print(kind, steps)

    settings = SentenceTransformerTrainingArguments(
        f"{folder}/run",
        max_steps=4,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_steps=2,
    )
    rows = Dataset.from_dict({"anchor": texts[:12], "positive": texts[12:]})
    trainer = SentenceTransformerTrainer(model, settings, train_dataset=rows, loss=losses.MultipleNegativesRankingLoss(model))
    trainer.remove_callback(PrinterCallback)
    print("trained", trainer.train().global_step, len([e for e in trainer.state.log_history if "loss" in e]))

    model.save_pretrained(f"{folder}/saved")
    again = SentenceTransformer(f"{folder}/saved", device="cpu")
    print("loaded is saved", np.array_equal(again.encode(texts[:3]), model.encode(texts[:3])))

    cross = CrossEncoder(f"{folder}/bert", num_labels=1, device="cpu")
    fill(cross.model)
    print("pairs", [round(float(x), 3) for x in cross.predict([(texts[0], texts[1]), (texts[2], texts[3])])])
print("example", InputExample(texts=["a", "b"], label=1.0).label)
