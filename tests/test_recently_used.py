"""`weft.recently_used`: which value goes when there are too many."""

from weft.recently_used import RecentlyUsed


def test_the_least_recently_used_value_goes() -> None:
    values: RecentlyUsed[str, int] = RecentlyUsed(2)
    values.keep("a", 1)
    values.keep("b", 2)
    assert values.find("a") == 1
    assert values.get_or_make("c", lambda: 3) == 3
    assert [values.peek(key) for key in "abc"] == [1, None, 3]
    assert values.peek("a") == 1
    values.keep("d", 4)
    assert [values.peek(key) for key in "acd"] == [None, 3, 4], "a look was no use"
    assert (values.forget("c"), values.forget("c"), len(values)) == (3, None, 1)


def test_what_is_there_is_not_made_again() -> None:
    values: RecentlyUsed[str, list[int]] = RecentlyUsed(2)
    assert values.get_or_make("a", list) is values.get_or_make("a", list)
