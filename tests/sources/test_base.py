from boundby.sources.base import SourceError


def test_a_message_says_who_what_and_what_to_try() -> None:
    error = SourceError("vllm", "no metrics from http://x (Connection refused)", "Is it up?")

    assert str(error) == "vllm: no metrics from http://x (Connection refused). Is it up?"


def test_a_message_without_a_hint_ends_with_the_problem() -> None:
    assert str(SourceError("vllm", "gone")) == "vllm: gone"


def test_the_detail_leaves_the_name_out() -> None:
    assert SourceError("vllm", "gone", "Look.").detail == "gone. Look."
