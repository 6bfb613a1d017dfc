import numpy as np
import pytest
import tercet


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_the_nearest_rows_are_numpys(rng, metric):
    rows = rng.normal(size=(500, 32)).astype(np.float32)
    queries = rng.normal(size=(20, 32)).astype(np.float32)
    scores, numbers = tercet.Index(rows, metric).search(queries, k=10)
    assert scores.shape == numbers.shape == (20, 10)
    exact = queries @ rows.T
    if metric == "cosine":
        exact /= np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(rows, axis=1)
    best = np.argsort(-exact, axis=1)[:, :10]
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(numbers, best)])
    # Rows and queries are codes of a byte.
    assert recall > 0.9
    found = np.take_along_axis(exact, numbers, axis=1)
    assert np.allclose(scores, found, atol=0.05 * np.abs(exact).max())
    assert (np.diff(scores, axis=1) <= 0).all()


def test_what_cannot_be_searched_is_refused_in_a_sentence(rng):
    index = tercet.Index(rng.normal(size=(5, 3)))
    assert len(index) == 5 and repr(index) == "Index(5 rows of 3, 'cosine')"
    for queries, k, words in [
        (np.ones((1, 4)), 1, "the rows have 3 values"),
        (np.ones(3), 1, "the rows have 3 values"),
        (np.ones((1, 3)), 6, "k is 6, but the index has 5 rows"),
        (np.ones((1, 3)), 0, "k is 0"),
        (np.full((1, 3), np.inf), 1, "finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            index.search(queries, k)
    with pytest.raises(ValueError, match="no metric is called `l3`"):
        tercet.Index(np.ones((2, 2)), "l3")
    with pytest.raises(ValueError):
        tercet.Index(np.ones(3))


def test_many_queries_are_searched_part_by_part(rng):
    rows = rng.normal(size=(50_000, 32)).astype(np.float32)
    queries = rng.normal(size=(11_000, 32)).astype(np.float32)
    index = tercet.Index(rows, "dot")
    scores, found = index.search(queries, k=2)
    for part in [slice(0, 50), slice(10_700, 10_800), slice(10_950, 11_000)]:
        own_scores, own = index.search(queries[part], k=2)
        assert (own == found[part]).all() and (own_scores == scores[part]).all()
    queries[10_900, 3] = np.nan
    with pytest.raises(ValueError, match=f"value {10_900 * 32 + 3} is not finite"):
        index.search(queries, k=2)
