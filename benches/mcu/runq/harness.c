// llama2.c's runq.c on an emulated board: a model of nano's sizes with random weights in RAM, and the instructions of its 64th token, sampling
// included, by the board's timer. See count.sh.

#define TESTING
#include RUNQ

// The CMSDK timer: control, value, reload. 25 MHz; at -icount shift=7 an instruction takes 3.2 ticks.
#define TIMER ((volatile uint32_t *)0x40000000)

enum { WIDTH = 256, HIDDEN = 512, LAYERS = 2, HEADS = 4, KV_HEADS = 2, VOCABULARY = 512, CONTEXT = 128, GROUP = 64 };
enum { KV_WIDTH = WIDTH / HEADS * KV_HEADS };

static char *heap = (char *)0x21000000;

void *_sbrk(int bytes) {
    char *before = heap;
    heap += bytes;
    return before;
}

void _init(void) {}
void _fini(void) {}
int clock_gettime(clockid_t clock, struct timespec *time) { return 0; }

static void semihosting(int operation, const void *argument) {
    register int r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void print(uint32_t number) {
    char text[12];
    char *at = text + 11;
    *at = 0;
    *--at = '\n';
    do {
        *--at = '0' + number % 10;
        number /= 10;
    } while (number);
    semihosting(4, at);
}

static uint32_t state = 1;

static uint32_t next(void) {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

static QuantizedTensor *tensors(int count, int len) {
    QuantizedTensor *all = malloc(count * sizeof *all);
    for (int i = 0; i < count; i++) {
        all[i] = (QuantizedTensor){malloc(len), malloc(len / GROUP * sizeof(float))};
        for (int j = 0; j < len; j++) all[i].q[j] = (int8_t)(next() % 255 - 127);
        for (int j = 0; j < len / GROUP; j++) all[i].s[j] = 0.0005f;
    }
    return all;
}

static float *ones(int len) {
    float *all = malloc(len * sizeof *all);
    for (int i = 0; i < len; i++) all[i] = 1.0f;
    return all;
}

static void run(void) {
    static Transformer model;
    TransformerWeights *w = &model.weights;
    GS = GROUP;
    model.config = (Config){WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY, CONTEXT};
    w->rms_att_weight = ones(LAYERS * WIDTH);
    w->rms_ffn_weight = ones(LAYERS * WIDTH);
    w->rms_final_weight = ones(WIDTH);
    w->q_tokens = w->wcls = tensors(1, VOCABULARY * WIDTH);
    w->token_embedding_table = malloc(VOCABULARY * WIDTH * sizeof(float));
    dequantize(w->q_tokens, w->token_embedding_table, VOCABULARY * WIDTH);
    w->wq = tensors(LAYERS, WIDTH * WIDTH);
    w->wk = tensors(LAYERS, KV_WIDTH * WIDTH);
    w->wv = tensors(LAYERS, KV_WIDTH * WIDTH);
    w->wo = tensors(LAYERS, WIDTH * WIDTH);
    w->w1 = tensors(LAYERS, HIDDEN * WIDTH);
    w->w2 = tensors(LAYERS, HIDDEN * WIDTH);
    w->w3 = tensors(LAYERS, HIDDEN * WIDTH);
    malloc_run_state(&model.state, &model.config);
    Sampler sampler;
    build_sampler(&sampler, VOCABULARY, 0.8f, 1.0f, 1);
    TIMER[2] = TIMER[1] = 0xFFFFFFFF;
    TIMER[0] = 1;
    uint32_t ticks = 0;
    for (int position = 0, token = 1; position < 64; position++) {
        uint32_t before = TIMER[1];
        token = sample(&sampler, forward(&model, token, position));
        ticks = before - TIMER[1];
    }
    print((uint32_t)(ticks / 3.2));
}

void reset(void) {
    // The floating-point unit.
    *(volatile uint32_t *)0xE000ED88 |= 0xF << 20;
    __asm volatile("dsb\nisb");
    run();
    semihosting(0x18, (void *)0x20026);
    for (;;) {}
}

__attribute__((section(".vectors"), used)) static void *const vectors[2] = {(void *)0x203FFFF0, (void *)reset};
