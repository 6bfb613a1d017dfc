import json
import subprocess

import tercet


def test_this_machine_gives_the_bits_of_the_command(command):
    found = tercet.verify()
    said = subprocess.run([command, "verify", "--json"], capture_output=True, check=True)
    engines = [it for it in json.loads(said.stdout)["engines"] if "thread" in it["engine"] or "core" in it["engine"]]
    assert [it["engine"] for it in found] == [it["engine"] for it in engines]
    for mine, theirs in zip(found, engines):
        assert mine["differ"] == theirs["differ"] == [] and mine["seconds"] > 0
        assert mine["operations"] == mine["agreed"] == theirs["agreed"] > 100
