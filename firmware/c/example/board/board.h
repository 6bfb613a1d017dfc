#ifndef BOARD_H
#define BOARD_H

/* Ends the program: 0 is success. */
void board_exit(int status) __attribute__((noreturn));

#endif
