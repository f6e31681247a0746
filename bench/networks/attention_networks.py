"""Networks of one attention each, in the sizes of real networks: Softmax(query * key * scale +
mask) * value with the Transposes around it, without weights."""

# Name: heads, queries, keys, width of a head, whether there is a mask.
SIZES = {
    "clip_text": (12, 77, 77, 64, True),
    "bert_128": (12, 128, 128, 64, True),
    "vision_base": (12, 197, 197, 64, False),
    "bert_512": (12, 512, 512, 64, True),
    "whisper_encoder": (6, 1500, 1500, 64, False),
    "painter_4096": (8, 4096, 4096, 40, False),
    "reduced_keys": (1, 3136, 49, 32, False),
}


def attention(net, heads, queries, keys, head, has_mask):
    width = heads * head
    lengths = {"q": queries, "k": keys, "v": keys}
    inputs = {name: net.input(1, length, width, name=name) for name, length in lengths.items()}

    def split(name, *order):
        return net.permute(net.reshape(inputs[name], 1, lengths[name], heads, head), *order)

    scores = net.op("MatMul", split("q", 0, 2, 1, 3), split("k", 0, 2, 3, 1))
    scores = net.mul(scores, head ** -0.5)
    if has_mask:
        scores = net.add(scores, net.input(1, 1, 1, keys, name="mask"))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), split("v", 0, 2, 1, 3))
    return net.join_heads(mixed, queries, width)


NETWORKS = {name: lambda net, sizes=sizes: attention(net, *sizes)
            for name, sizes in SIZES.items()}
