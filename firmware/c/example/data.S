/* Files linked as they are; GGUF aligns tensors within a file to 32 bytes, and so lies the file. */
#define FILE_AT(symbol, path)                                                                                                  \
    .balign 32;                                                                                                                \
    .global symbol, symbol##_end;                                                                                              \
    symbol: .incbin path;                                                                                                      \
    symbol##_end:

    .section .rodata.digits, "a"
FILE_AT(digits_gguf, "../../data/digits.gguf")
FILE_AT(digits_npy, "../../data/digits.npy")

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
