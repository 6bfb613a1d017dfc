import numpy as np
import pytest
import tercet
from sklearn.cluster import KMeans as Reference


def blobs(rng, n=600, d=5, k=4):
    centres = rng.uniform(-10, 10, size=(k, d))
    labels = rng.integers(0, k, size=n)
    return (centres[labels] + rng.normal(scale=0.3, size=(n, d))).astype(np.float32)


def test_clusters_are_scikit_learns(rng):
    x = blobs(rng)
    found = tercet.KMeans(4, n_init=4).fit(x)
    reference = Reference(4, n_init=4, random_state=0).fit(x)
    # The same parts, whatever their numbers; points are on a grid of int8.
    pairs = set(zip(found.labels_.tolist(), reference.labels_.tolist()))
    assert len(pairs) == 4
    assert found.inertia_ == pytest.approx(reference.inertia_, rel=0.02)
    order = dict(pairs)
    for cluster, centre in enumerate(found.cluster_centers_):
        assert np.allclose(centre, reference.cluster_centers_[order[cluster]], atol=0.1)
    assert np.array_equal(found.predict(x), found.labels_)


def test_given_centroids_weights_and_batches(rng):
    x = blobs(rng)
    given = tercet.KMeans(4, init=x[:4], max_iter=1).fit(x)
    assert given.n_iter_ == 1
    twice = np.concatenate([x, x[:50]])
    weights = np.ones(len(x), dtype=int)
    weights[:50] = 2
    a = tercet.KMeans(4, init=x[:4]).fit(x, sample_weight=weights)
    b = tercet.KMeans(4, init=x[:4]).fit(twice)
    assert np.array_equal(a.cluster_centers_, b.cluster_centers_)
    assert tercet.KMeans(4, batch_size=64).fit(x).cluster_centers_.shape == (4, 5)
    assert tercet.KMeans(4, spherical=True).fit(x).labels_.shape == (600,)


def test_the_same_seed_gives_the_same_bits(rng):
    x = blobs(rng)
    a, b = (tercet.KMeans(6, init="random", random_state=3).fit(x) for _ in range(2))
    assert np.array_equal(a.labels_, b.labels_) and a.inertia_ == b.inertia_


def test_parameters_are_got_and_set():
    kmeans = tercet.KMeans(3, n_init=2)
    assert kmeans.set_params(n_clusters=5).get_params()["n_clusters"] == 5
    with pytest.raises(ValueError, match="has no parameter k;"):
        kmeans.set_params(k=1)


def test_what_cannot_be_clustered_is_refused_in_a_sentence(rng):
    x = blobs(rng)
    for kmeans, data, words in [
        (tercet.KMeans(4), x[0], "a row per point"),
        (tercet.KMeans(0), x, "clusters"),
        (tercet.KMeans(601), x, "clusters"),
        (tercet.KMeans(2), np.full((4, 2), np.nan), "not finite"),
        (tercet.KMeans(2, init="best"), x, "init is 'best'"),
        (tercet.KMeans(2, init=x[:2, :3]), x, "coordinates|values|points"),
    ]:
        with pytest.raises(ValueError, match=words):
            kmeans.fit(data)
    with pytest.raises(ValueError, match="whole number"):
        tercet.KMeans(2).fit(x, sample_weight=np.full(len(x), 0.5))
    with pytest.raises(ValueError, match="not fitted"):
        tercet.KMeans(2).predict(x)
