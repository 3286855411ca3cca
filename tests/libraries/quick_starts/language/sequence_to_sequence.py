"""T5, BART and Whisper of two layers: losses, gradients, a few steps, translations by greedy choice and beams, files."""

import tempfile
import zlib

import numpy as np
import torch
import transformers

torch.manual_seed(0)
transformers.logging.set_verbosity_error()


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model.eval()  # without dropout, whose draws are no library's but one's own


WORDS = {"vocab_size": 60, "pad_token_id": 0, "eos_token_id": 2}
LAYERS = {
    **WORDS, "bos_token_id": 1, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
}  # fmt: skip
t5 = transformers.T5Config(
    **WORDS, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, decoder_start_token_id=0, feed_forward_proj="gated-gelu"
)
bart = transformers.BartConfig(**LAYERS, max_position_embeddings=64, decoder_start_token_id=2, forced_eos_token_id=2)
whisper = transformers.WhisperConfig(
    **LAYERS,
    num_mel_bins=8,
    max_source_positions=20,
    max_target_positions=40,
    decoder_start_token_id=3,
    suppress_tokens=[],
    begin_suppress_tokens=[],
)
ids = torch.tensor(np.random.RandomState(0).randint(4, 60, (2, 8)))
sound = torch.tensor(np.random.RandomState(1).standard_normal((2, 8, 40)), dtype=torch.float32)
for kind, config, given in (
    ("T5", t5, {"input_ids": ids}),
    ("Bart", bart, {"input_ids": ids}),
    ("Whisper", whisper, {"input_features": sound}),
):
    model_class = getattr(transformers, f"{kind}ForConditionalGeneration")
    model = fill(model_class(config))
    labels = ids.flip(1).where(torch.arange(8) < 6, -100)
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
    for _ in range(3):
        out = model(**given, labels=labels)
        out.loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(kind, "loss", round(float(out.loss), 4), "norm", round(float(norm), 4))
    plain = {"max_new_tokens": 7, "do_sample": False}
    print(kind, "greedy", model.generate(**given, **plain).tolist())
    print(kind, "beams", model.generate(**given, num_beams=3, **plain).tolist())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = model_class.from_pretrained(folder).eval()
        with torch.no_grad():
            print(kind, "loaded is saved", torch.equal(loaded(**given, labels=labels).logits, model(**given, labels=labels).logits))
