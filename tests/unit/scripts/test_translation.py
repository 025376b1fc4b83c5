"""Pages that scripts write have a Chinese twin that says the same, and cannot fall behind."""

import metrics_doc
import pytest
import translation


def test_numbers_and_marks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"Runs": "运行", "after # steps": "# 步之后", "clears #": "通过 #", "all is well": "好"}
    monkeypatch.setitem(translation.WORDS, "page", words)
    text = "## Runs\n\nafter 256\nsteps\n\n| Runs | 0..30 |\n|---|---|\n| clears 4-3, 8-4 (2) |  |"
    assert translation.chinese("page", text) == (
        "## 运行\n\n256 步之后\n\n| 运行 | 0..30 |\n|---|---|\n| 通过 4-3, 8-4 (2) |  |"
    )
    assert (
        translation.chinese("page", "- after 1,024 steps\n- all is well") == "- 1,024 步之后\n- 好"
    )
    assert translation.chinese("page", "`code` 3 %\n") == "`code` 3 %\n"


def test_what_is_not_translated_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(translation.WORDS, "page", {"# of #": "只有 #"})
    with pytest.raises(ValueError, match=r"no Chinese for 'something new' in \[page\]"):
        translation.chinese("page", "something new")
    with pytest.raises(ValueError, match="has not the 2 numbers"):
        translation.chinese("page", "3 of 4")


def test_every_word_of_the_metrics_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()

    class Words(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            used.add(name)
            return super().__getitem__(name)

    words = translation.WORDS["metrics"]
    monkeypatch.setitem(translation.WORDS, "metrics", Words(words))
    metrics_doc.pages()
    assert set(words) - used == set()
