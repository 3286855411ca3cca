"""diffusers: a small UNet learns to tell noise, and DDPM, DDIM, Euler and others walk back from it."""

import tempfile
import zlib

import numpy as np
import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    HeunDiscreteScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    UNet2DConditionModel,
    UNet2DModel,
    UniPCMultistepScheduler,
)
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel

torch.manual_seed(0)


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model.eval()


def draw(*shape, seed):
    return torch.tensor(np.random.RandomState(seed).standard_normal(shape), dtype=torch.float32)


blocks = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}
unet = fill(
    UNet2DModel(
        sample_size=8, in_channels=3, out_channels=3, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=4, **blocks,
    )
)  # fmt: skip
noises = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
schedule = get_cosine_schedule_with_warmup(optimizer, 2, 10)
ema = EMAModel(unet.parameters(), decay=0.9)
clean = draw(2, 3, 8, 8, seed=1)
for step in range(3):
    noise, when = draw(2, 3, 8, 8, seed=10 + step), torch.tensor([7 * step + 3, 60 - step])
    told = unet(noises.add_noise(clean, noise, when), when).sample
    loss = torch.nn.functional.mse_loss(told, noise)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    ema.step(unet.parameters())
    print("step", step, round(float(loss), 4), round(float(norm), 3))
print("average", round(float(sum(p.abs().sum() for p in ema.shadow_params)), 2))

for kind in (
    DDIMScheduler, PNDMScheduler, EulerDiscreteScheduler, HeunDiscreteScheduler, LMSDiscreteScheduler, DPMSolverMultistepScheduler,
    UniPCMultistepScheduler, FlowMatchEulerDiscreteScheduler,
):  # fmt: skip
    walk = kind(num_train_timesteps=100)
    walk.set_timesteps(4)
    sample = draw(1, 3, 8, 8, seed=5) * getattr(walk, "init_noise_sigma", 1.0)
    with torch.no_grad():
        for t in walk.timesteps:
            given = walk.scale_model_input(sample, t) if hasattr(walk, "scale_model_input") else sample
            sample = walk.step(unet(given, t).sample, t, sample).prev_sample
    print(kind.__name__, len(walk.timesteps), round(float(sample.mean()), 4), round(float(sample.std()), 4))
for kind in (DDPMScheduler, EulerAncestralDiscreteScheduler):
    walk = kind(num_train_timesteps=100)
    walk.set_timesteps(4)
    sample = draw(1, 3, 8, 8, seed=5) * walk.init_noise_sigma
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for t in walk.timesteps:
            sample = walk.step(unet(walk.scale_model_input(sample, t), t).sample, t, sample, generator=generator).prev_sample
    print(kind.__name__, bool(torch.isfinite(sample).all()), tuple(sample.shape))

pipe = DDPMPipeline(unet, DDPMScheduler(num_train_timesteps=20))
pipe.set_progress_bar_config(disable=True)
pictures = pipe(batch_size=2, num_inference_steps=3, generator=torch.Generator().manual_seed(1), output_type="np").images
print("pipeline", pictures.shape, bool((pictures >= 0).all() and (pictures <= 1).all()))
with tempfile.TemporaryDirectory() as folder:
    pipe.save_pretrained(folder)
    again = DDPMPipeline.from_pretrained(folder)
    with torch.no_grad():
        print(
            "loaded is saved", torch.equal(again.unet(clean, 3).sample, unet(clean, 3).sample), again.scheduler.config.num_train_timesteps
        )

conditional = fill(
    UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=12, attention_head_dim=4, **blocks,
    )
)  # fmt: skip
told = conditional(draw(2, 4, 8, 8, seed=2), torch.tensor([3, 9]), encoder_hidden_states=draw(2, 5, 12, seed=3)).sample
told.square().mean().backward()
gradient = sum(float(p.grad.abs().sum()) for p in conditional.parameters() if p.grad is not None)
print("conditional", round(float(told.abs().mean()), 4), round(gradient, 2))
coder = fill(
    AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, sample_size=16, **blocks
    )
)  # fmt: skip
with torch.no_grad():
    latent = coder.encode(draw(1, 3, 16, 16, seed=4)).latent_dist
    back = coder.decode(latent.mode()).sample
print("coder", tuple(latent.mode().shape), round(float(back.abs().mean()), 4), round(float(latent.kl().mean()), 3))
