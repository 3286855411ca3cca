"""flair: a tagger and a classifier of texts over one-hot words, learned from small files, told, saved and loaded."""

import logging
import tempfile
from pathlib import Path

import flair
import torch
from flair.data import Corpus, Sentence
from flair.datasets import ClassificationCorpus, ColumnCorpus
from flair.embeddings import DocumentPoolEmbeddings, DocumentRNNEmbeddings, OneHotEmbeddings
from flair.models import SequenceTagger, TextClassifier
from flair.trainers import ModelTrainer

logging.getLogger("flair").setLevel(logging.ERROR)
flair.set_seed(0)
flair.device = torch.device("cpu")
PLACES, NAMES = ["Paris", "Rome", "Berlin"], ["Ann", "Bob", "Eve"]
lines = [[(n, "NAME"), ("went", "O"), ("to", "O"), (p, "PLACE"), (".", "O")] for n in NAMES for p in PLACES] * 3
with tempfile.TemporaryDirectory() as folder:
    for part in ("train", "dev", "test"):
        Path(f"{folder}/{part}.txt").write_text(
            "\n\n".join("\n".join(f"{w} {t}" for w, t in line) for line in lines) + "\n", encoding="utf-8"
        )
        Path(f"{folder}/{part}.classes").write_text(
            "".join(f"__label__{'city' if i % 2 else 'person'} {PLACES[i % 3] if i % 2 else NAMES[i % 3]} is here\n" for i in range(12)),
            encoding="utf-8",
        )
    corpus: Corpus = ColumnCorpus(folder, {0: "text", 1: "ner"}, train_file="train.txt", dev_file="dev.txt", test_file="test.txt")
    tags = corpus.make_label_dictionary("ner", add_unk=False)
    print("corpus", len(corpus.train), sorted(tags.get_items()))
    tagger = SequenceTagger(
        hidden_size=16,
        embeddings=OneHotEmbeddings.from_corpus(corpus, min_freq=1, embedding_length=12),
        tag_dictionary=tags,
        tag_type="ner",
        use_crf=True,
    )
    loss, count = tagger.forward_loss(corpus.train[:4] if isinstance(corpus.train, list) else [corpus.train[i] for i in range(4)])
    loss.backward()
    print("loss", count, bool(loss > 0), all(p.grad is not None for p in tagger.parameters() if p.requires_grad))
    told = ModelTrainer(tagger, corpus).train(f"{folder}/run", learning_rate=0.5, mini_batch_size=4, max_epochs=12)
    print("score", round(told["test_score"], 2) >= 0.9)
    sentence = Sentence("Eve went to Rome .", use_tokenizer=False)
    tagger.predict(sentence)
    print("told", [(found.data_point.text, found.value) for found in sentence.get_labels("ner")])
    tagger.save(f"{folder}/tagger.pt")
    again = SequenceTagger.load(f"{folder}/tagger.pt")
    other = Sentence("Eve went to Rome .", use_tokenizer=False)
    again.predict(other)
    print("loaded", [(found.data_point.text, found.value) for found in other.get_labels("ner")])

    texts = ClassificationCorpus(folder, train_file="train.classes", dev_file="dev.classes", test_file="test.classes", label_type="kind")
    kinds = texts.make_label_dictionary("kind")
    for how in (DocumentPoolEmbeddings, DocumentRNNEmbeddings):
        words = OneHotEmbeddings.from_corpus(texts, min_freq=1, embedding_length=8)
        classifier = TextClassifier(how([words]), label_type="kind", label_dictionary=kinds)
        ModelTrainer(classifier, texts).train(f"{folder}/{how.__name__}", learning_rate=0.5, mini_batch_size=4, max_epochs=40)
        result = classifier.evaluate(texts.test, gold_label_type="kind", mini_batch_size=4)
        print(how.__name__, round(result.main_score, 2) >= 0.9)
