/* Reads digits: a ternary network in flash, 32 held-out images beside it, every logit digested. Prints what
 * `tercet network run firmware/data/digits.gguf firmware/data/digits.npy --digest` prints. */
#include "example.h"
#include "text.h"

#define IMAGES 32

/* data.S */
extern const uint8_t digits_gguf[], digits_gguf_end[], digits_npy[], digits_npy_end[];

tercet_status digits(tercet_arena *arena) {
    tercet_network *network;
    tercet_network_shape shape;
    uint32_t *scratch;
    int64_t *sums;
    uint64_t all = TERCET_DIGEST;

    TAKE(arena, network, 1);
    TRY(tercet_network_open(network, digits_gguf, (size_t)(digits_gguf_end - digits_gguf)));
    TRY(tercet_network_sizes(network, &shape));
    TAKE(arena, sums, shape.outputs);
    TAKE(arena, scratch, shape.words);
    if ((size_t)(digits_npy_end - digits_npy) < IMAGES * shape.inputs) {
        return TERCET_STATUS_LENGTH;
    }
    /* An npy file of bytes ends in its data. */
    const int8_t *image = (const int8_t *)digits_npy_end - IMAGES * shape.inputs;
    for (uint32_t number = 0; number < IMAGES; number += 1) {
        uint64_t one = TERCET_DIGEST;
        size_t label;
        TRY(tercet_network_run(network, image, shape.inputs, scratch, shape.words, sums, shape.outputs));
        TRY(tercet_network_digest(&one, sums, shape.outputs));
        TRY(tercet_network_digest(&all, sums, shape.outputs));
        TRY(tercet_network_class(network, sums, shape.outputs, &label));
        text_number(number);
        text(" ");
        text_hex(one);
        text(" ");
        text_number((uint32_t)label);
        text("\n");
        image += shape.inputs;
    }
    text_digest("logits", all);
    return TERCET_STATUS_OK;
}
