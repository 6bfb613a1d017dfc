/* Start-up alone, over which `make size` says what functions of the library add. */
int main(void) {
    return 0;
}
