"""A model goes to the Hub and comes back, by the Hub's own client and its protocol."""

import os
import subprocess
import sys

import yaml
from hub_stand_in import local_hub

ROUND_TRIP = """
from annotated_transformer import load
mine = load("tatoeba-en-de", device="cpu")
print(mine.push_to_hub("someone/everyday"))
back = load("hf:someone/everyday", device="cpu")
text = ["Where is the station?", "I don't know."]
assert back.translate(text) == mine.translate(text), back.translate(text)
try:
    load("hf:someone/else", device="cpu")
except Exception as error:
    print(error)
"""


def test_a_model_goes_to_the_hub_and_comes_back_the_same(tmp_path):
    with local_hub() as hub:
        about = {
            "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_OFFLINE": "0",  # whatever this run has
            "NO_PROXY": "127.0.0.1",
            "HF_HOME": str(tmp_path),
            "HF_TOKEN": "hf_nobody",
        }
        done = subprocess.run(
            [sys.executable, "-W", "error::UserWarning", "-c", ROUND_TRIP],
            env=os.environ | about,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    commit, missing = done.stdout.splitlines()
    assert "/someone/everyday/" in commit
    assert "someone/else on the Hugging Face Hub: " in missing
    _, head, text = (
        hub.files["someone/everyday"]["README.md"].decode().split("---\n", 2)
    )
    facts = yaml.safe_load(head)
    assert facts["pipeline_tag"] == "translation" and facts["language"] == ["en", "de"]
    assert "keep this attribution" in text
