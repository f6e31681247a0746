"""Small networks of kinds that the zoo does not have, with random weights: what users bring.
Benchmarks and tests of choosing use them, because no constant of Tessera was set by their times."""


def residual_tower(net):
    """A board game's network: 8x8 maps, squeeze-and-excite, a policy and nothing else."""
    x = net.relu(net.convolve(net.input(1, 32, 8, 8), 128, 3))
    for _ in range(8):
        inner = net.convolve(net.relu(net.convolve(x, 128, 3)), 128, 3)
        x = net.relu(net.add(net.squeeze_excite(inner), x))
    return net.convolve(x, 73, 1)


def vision_encoder(net):
    """A small vision transformer."""
    width, length = 192, 196
    patches = net.convolve(net.input(1, 3, 224, 224), width, 16, 16, pads=[0] * 4)
    x = net.permute(net.reshape(patches, 1, width, length), 0, 2, 1)
    for _ in range(6):
        x = net.encode(x, length, 3)
    pooled = net.op("ReduceMean", net.normalize_layer(x), axes=[1], keepdims=0)
    return net.linear(pooled, 1000)


def detector(net):
    """A one-stage detector: SiLU, split paths, an upsampled neck."""
    def unit(x, outputs, size, stride=1):
        return net.unit(x, outputs, size, stride, act=net.silu)

    def stage(x, depth):
        channels = x.features
        left, right = unit(x, channels // 2, 1), unit(x, channels // 2, 1)
        for _ in range(depth):
            left = net.add(left, unit(unit(left, channels // 2, 1), channels // 2, 3))
        return unit(net.concatenate(left, right), channels, 1)

    x = unit(unit(net.input(1, 3, 256, 256), 16, 3, 2), 32, 3, 2)
    x = stage(x, 1)
    middle = stage(unit(x, 64, 3, 2), 2)
    deep = stage(unit(middle, 128, 3, 2), 2)
    top = stage(unit(deep, 256, 3, 2), 1)
    neck = unit(net.concatenate(net.enlarge(unit(top, 128, 1), 2), deep), 128, 1)
    return net.convolve(stage(neck, 1), 85, 1)


def mobile_hard_swish(net):
    """Inverted residuals with hard-swish and 5x5 depthwise kernels."""
    x = net.op("HardSwish", net.convolve(net.input(1, 3, 224, 224), 16, 3, 2))
    for outputs, stride, size in ((24, 2, 3), (24, 1, 3), (40, 2, 5), (40, 1, 5), (80, 2, 3),
                                  (80, 1, 3), (112, 1, 3), (160, 2, 5), (160, 1, 5)):
        wide = x.features * 4
        inner = net.op("HardSwish", net.convolve(x, wide, 1))
        inner = net.op("HardSwish", net.convolve(inner, wide, size, stride, wide))
        inner = net.convolve(net.squeeze_excite(inner), outputs, 1)
        x = net.add(x, inner) if stride == 1 and x.features == outputs else inner
    return net.classify(x, 1000)


def wave_encoder(net):
    """Strided convolutions over a sound, then an encoder."""
    x = net.input(1, 1, 10000, features=1)
    for outputs, size, stride in ((64, 10, 5), (128, 8, 4), (192, 4, 2)):
        x = net.gelu(net.convolve(x, outputs, [size], stride, pads=[size - stride, 0]))
    x = net.permute(x, 0, 2, 1)
    for _ in range(3):
        x = net.encode(x, 250, 4)
    return net.linear(x, 32)


def temporal_blocks(net):
    """Dilated depthwise 1-D convolutions, as speech separation has them."""
    x = net.convolve(net.input(1, 64, 400, features=64), 128, [1])
    for layer in range(8):
        inner = net.op("PRelu", net.convolve(x, 256, [1]), [[0.2]])
        inner = net.convolve(inner, 256, [3], groups=256, dilation=2 ** (layer % 4))
        x = net.add(x, net.convolve(inner, 128, [1]))
    return net.op("Sigmoid", x)


def mixer(net):
    """An MLP-mixer."""
    x = net.input(1, 64, 256)
    for _ in range(4):
        columns = net.permute(net.normalize_layer(x), 0, 2, 1, features=64)
        mixed = net.linear(net.gelu(net.linear(columns, 128)), 64)
        x = net.add(x, net.permute(mixed, 0, 2, 1))
        x = net.add(x, net.feed_forward(net.normalize_layer(x), 4, net.gelu))
    return x


def upsample_to_image(net, x):
    """From 4x4 pixels to 64x64."""
    for outputs in (128, 64, 32):
        x = net.relu(net.normalize_batch(net.convolve_transposed(x, outputs)))
    return net.op("Tanh", net.convolve_transposed(x, 3))


def generator(net):
    """Transposed convolutions from a vector to a picture."""
    x = net.linear(net.input(1, 100), 256 * 16)
    return upsample_to_image(net, net.reshape(x, 1, 256, 4, 4, features=256))


def ranking(net):
    """Products of few rows: dense layers over a batch of 8, with a cross of features."""
    x = first = net.input(8, 512)
    for _ in range(3):
        x = net.add(net.mul(first, net.linear(x, 512)), x)
    for columns in (1024, 512, 256):
        x = net.relu(net.linear(x, columns))
    return net.op("Sigmoid", net.linear(x, 1))


def evaluator(net):
    """The small network of a chess engine: one board at a time, clipped layers."""
    x = net.input(1, 768)
    for columns in (512, 32, 32):
        x = net.op("Clip", net.linear(x, columns), 0.0, 1.0)
    return net.linear(x, 1)


def super_resolution(net):
    """Convolutions at full size and a pixel shuffle."""
    x = net.relu(net.convolve(net.input(1, 3, 120, 160), 32, 5))
    for _ in range(3):
        x = net.relu(net.convolve(x, 32, 3))
    return net.op("DepthToSpace", net.convolve(x, 12, 3), blocksize=2)


def grouped_residual(net):
    """Grouped 3x3 convolutions between pointwise ones."""
    x = net.op("MaxPool", net.relu(net.convolve(net.input(1, 3, 160, 160), 64, 7, 2)),
               kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for outputs, stride in ((128, 1), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        inner = net.relu(net.convolve(x, outputs, 1))
        inner = net.relu(net.convolve(inner, outputs, 3, stride, 32))
        inner = net.convolve(inner, outputs, 1)
        is_same = stride == 1 and x.features == outputs
        x = net.relu(net.add(inner, x if is_same else net.convolve(x, outputs, 1, stride)))
    return net.classify(x, 100)


NETWORKS = {build.__name__: build for build in (
    residual_tower, vision_encoder, detector, mobile_hard_swish, wave_encoder, temporal_blocks,
    mixer, generator, ranking, evaluator, super_resolution, grouped_residual)}
