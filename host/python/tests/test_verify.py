import tercet


def test_this_machine_gives_the_released_bits():
    found = tercet.verify()
    backends = tercet.info()["backends"]
    engines = ["core, scalar", *(f"{name}, all threads" for name in backends), f"{backends[-1]}, one thread"]
    assert [it["engine"] for it in found] == engines
    for it in found:
        assert it["differ"] == [] and it["operations"] == it["agreed"] > 140 and it["seconds"] > 0
