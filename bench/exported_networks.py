#!/usr/bin/env python3
"""Writes networks of other people's making, as PyTorch exports them, with random weights.

They come from torchvision, timm and transformers, which are not among tools/requirements.txt:

  python3 -m venv /tmp/torch
  /tmp/torch/bin/pip install torch==2.5.1 torchvision==0.20.1 timm transformers==4.46.3 onnx
  /tmp/torch/bin/python bench/exported_networks.py DIR

DIR gets a folder for each network, with model.onnx in it; those that exist are not made again. A
network that cannot be exported is reported and left out."""

import argparse
import operator
import pathlib
import shutil
import sys

TORCHVISION = """convnext_tiny efficientnet_v2_s googlenet maxvit_t mnasnet1_0 mobilenet_v3_large
mobilenet_v3_small regnet_x_800mf regnet_y_400mf resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1
swin_t swin_v2_t wide_resnet50_2 densenet169""".split()
TIMM = """botnet26t_256 coatnet_nano_rw_224 convit_tiny crossvit_tiny_240 cspresnet50 dla34
edgenext_xx_small efficientformer_l1 ese_vovnet19b_dw fastvit_t8 ghostnet_100 gmixer_24_224
hrnet_w18_small lambda_resnet26t levit_128 mixnet_s mobileone_s0 mobilevit_xs mobilenetv4_conv_small
nf_resnet50 poolformer_s12 pvt_v2_b0 regnety_002 repvgg_a0 res2net50_26w_4s resmlp_12_224
rexnet_100 sequencer2d_s tf_efficientnet_lite0 tinynet_e twins_svt_small visformer_tiny vovnet39a
xcit_nano_12_p16_224""".split()
SEGMENTATION = {"lraspp_mobilenet_v3_large": 320, "fcn_resnet50": 224,
                "deeplabv3_mobilenet_v3_large": 256}  # the side of the image
EAGER = {"attn_implementation": "eager"}
HEADS = {"num_attention_heads": 12, "intermediate_size": 1248}
# Name: class of the network, its configuration with options, the shape of its input; None: tokens.
TRANSFORMERS = {
    "whisper_encoder": ("models.whisper.modeling_whisper.WhisperEncoder", "WhisperConfig", dict(
        encoder_layers=2, d_model=384, encoder_attention_heads=6, encoder_ffn_dim=1536, **EAGER),
        (1, 80, 3000)),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, (1, 3, 256, 256)),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", dict(num_hidden_layers=4, **EAGER),
                    (1, 3, 224, 224)),
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(n_layers=3, **EAGER), None),
    "albert": ("AlbertModel", "AlbertConfig", dict(
        hidden_size=312, num_hidden_layers=6, **HEADS, **EAGER), None),
    "mobilebert": ("MobileBertModel", "MobileBertConfig", dict(num_hidden_layers=6), None),
    "t5_encoder": ("T5EncoderModel", "T5Config", dict(num_layers=4), None),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", dict(num_hidden_layers=4), None),
    "llama": ("LlamaModel", "LlamaConfig", dict(
        hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, vocab_size=1000, use_cache=False, **EAGER), None),
}
RECURRENT = {"two_way_lstm": "LSTM", "two_way_gru": "GRU"}
TOKENS = 64
OPSET = 17


def recurrent_network(kind):
    import torch

    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(1000, 64)
            self.layers = getattr(torch.nn, kind)(64, 128, 2, batch_first=True,
                                                  bidirectional=True)

        def forward(self, tokens):
            return self.layers(self.embedding(tokens))[0]

    return Recurrent()


def all_networks():
    """Yields a name, a function that makes the network, the name of its input, and the shape of
    that; None: tokens."""
    import timm
    import torchvision
    import transformers

    for name in TORCHVISION:
        yield (name, lambda name=name: getattr(torchvision.models, name)(weights=None), "image",
               (1, 3, 224, 224))
    for name, size in SEGMENTATION.items():
        make = getattr(torchvision.models.segmentation, name)
        yield (name, lambda make=make: make(weights=None, weights_backbone=None), "image",
               (1, 3, size, size))
    for name in TIMM:
        size = timm.create_model(name).default_cfg["input_size"][-1]
        yield (name, lambda name=name: timm.create_model(name, exportable=True), "image",
               (1, 3, size, size))
    for name, (network, configuration, options, shape) in TRANSFORMERS.items():
        yield (name, lambda network=network, configuration=configuration, options=options:
               operator.attrgetter(network)(transformers)(
                   getattr(transformers, configuration)(**options)),
               "features" if shape else "tokens", shape)
    for name, kind in RECURRENT.items():
        yield name, lambda kind=kind: recurrent_network(kind), "tokens", None


def export(network, example, name, path):
    """Writes the network; its first result alone."""
    import torch

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network.eval()

        def forward(self, given):
            made = self.network(given)
            while not torch.is_tensor(made):
                made = next(iter(made.values())) if hasattr(made, "values") else made[0]
            return made

    for module in network.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
    torch.onnx.export(First(), (example,), str(path), opset_version=OPSET, input_names=[name])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/exported_networks.py /tmp/networks --only swin_t,llama")
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--only", default="", metavar="NAMES", help="some of them (default: all)")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit(f"exported_networks: torch is missing: see {sys.argv[0]} --help")
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    wanted = set(filter(None, arguments.only.split(",")))
    networks = list(all_networks())
    unknown = wanted - {name for name, *_ in networks}
    if unknown:
        sys.exit(f"exported_networks: there is no network {', '.join(sorted(unknown))}")
    for name, make, input_name, shape in networks:
        path = arguments.folder / name / "model.onnx"
        if path.exists() or (wanted and name not in wanted):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            network = make()
            example = torch.randn(*shape) if shape else torch.randint(0, 1000, (1, TOKENS))
            export(network, example, input_name, path)
            print(path, flush=True)
        except Exception as error:  # many kinds, of three libraries
            shutil.rmtree(path.parent)
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)


if __name__ == "__main__":
    main()
