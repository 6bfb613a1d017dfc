import numpy as np
import pytest
import tercet


def blobs(rng, n=600, d=5, k=4):
    centres = rng.uniform(-10, 10, size=(k, d))
    labels = rng.integers(0, k, size=n)
    return (centres[labels] + rng.normal(scale=0.3, size=(n, d))).astype(np.float32)


def test_clusters_are_scikit_learns(rng):
    cluster = pytest.importorskip("sklearn.cluster")
    x = blobs(rng)
    found = tercet.KMeans(4, n_init=4).fit(x)
    reference = cluster.KMeans(4, n_init=4, random_state=0).fit(x)
    # The same parts, whatever their numbers; points are on a grid of int8.
    pairs = set(zip(found.labels_.tolist(), reference.labels_.tolist()))
    assert len(pairs) == 4
    assert found.inertia_ == pytest.approx(reference.inertia_, rel=0.02)
    order = dict(pairs)
    for cluster, centre in enumerate(found.cluster_centers_):
        assert np.allclose(centre, reference.cluster_centers_[order[cluster]], atol=0.1)
    assert np.array_equal(found.predict(x), found.labels_)


def test_given_centroids_and_weights(rng):
    x = blobs(rng)
    given = tercet.KMeans(4, init=x[:4], max_iter=1).fit(x)
    assert given.n_iter_ == 1
    twice = np.concatenate([x, x[:50]])
    weights = np.ones(len(x), dtype=int)
    weights[:50] = 2
    a = tercet.KMeans(4, init=x[:4]).fit(x, sample_weight=weights)
    b = tercet.KMeans(4, init=x[:4]).fit(twice)
    assert np.array_equal(a.cluster_centers_, b.cluster_centers_)
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
        (tercet.KMeans(0), x, "n_clusters is 0"),
        (tercet.KMeans(-1), x, "n_clusters is -1"),
        (tercet.KMeans(2.5), x, "n_clusters is 2.5"),
        (tercet.KMeans(2, n_init="auto"), x, "n_init is 'auto'"),
        (tercet.KMeans(2, max_iter=1 << 32), x, "max_iter is"),
        (tercet.KMeans(2, random_state=-1), x, "random_state is -1"),
        (tercet.KMeans(2, tol=np.nan), x, "tol is nan"),
        (tercet.MiniBatchKMeans(2, batch_size=0), x, "batch_size is 0"),
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
    with pytest.raises(ValueError, match="this MiniBatchKMeans is not fitted"):
        tercet.MiniBatchKMeans(2).predict(x)


def test_mini_batches_find_the_same_clusters(rng):
    x = blobs(rng, n=3000)
    found = tercet.MiniBatchKMeans(4, batch_size=256, n_init=3).fit(x)
    exact = tercet.KMeans(4, n_init=3).fit(x)
    assert len(set(zip(found.labels_.tolist(), exact.labels_.tolist()))) == 4
    assert exact.inertia_ <= found.inertia_ < 1.05 * exact.inertia_
    assert np.array_equal(found.predict(x), found.labels_) and found.n_iter_ <= 100
    again = tercet.MiniBatchKMeans(4, batch_size=256, n_init=3).fit(x)
    assert np.array_equal(again.labels_, found.labels_) and again.inertia_ == found.inertia_
    # More than there are points is all of them.
    small = tercet.MiniBatchKMeans(2, batch_size=1 << 30).fit(x[:10])
    assert np.array_equal(small.labels_, tercet.MiniBatchKMeans(2, batch_size=10).fit(x[:10]).labels_)


def test_distances_and_scores_are_of_the_centroids(rng):
    x = blobs(rng)
    for kmeans in [tercet.KMeans(3), tercet.MiniBatchKMeans(3)]:
        labels = kmeans.fit_predict(x)
        assert np.array_equal(labels, kmeans.labels_)
        distances = kmeans.transform(x)
        assert distances.shape == (600, 3) and distances.dtype == np.float32
        expected = np.linalg.norm(x[:, None].astype(float) - kmeans.cluster_centers_, axis=2)
        assert np.allclose(distances, expected, rtol=1e-5)
        assert kmeans.score(x) == pytest.approx(-(expected[np.arange(600), labels] ** 2).sum(), rel=1e-5)
        assert kmeans.score(x) == pytest.approx(-kmeans.inertia_, rel=1e-5)
        assert np.array_equal(type(kmeans)(3).fit_transform(x), distances)
