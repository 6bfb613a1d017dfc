"""k-means with scikit-learn's words."""

from __future__ import annotations

import inspect as _inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as _np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _progress, _tercet

if TYPE_CHECKING:
    from typing_extensions import Self

class _Clusterer:
    """What the estimators share; their parameters are the arguments of ``__init__``."""

    n_clusters: int
    init: str | ArrayLike
    n_init: int
    max_iter: int
    tol: float
    random_state: int | None
    spherical: bool
    engine: str

    labels_: NDArray[_np.uint32]
    cluster_centers_: NDArray[_np.float32]
    inertia_: float
    n_iter_: int
    engine_: str
    n_features_in_: int

    @classmethod
    def _names(cls) -> list[str]:
        return list(_inspect.signature(cls).parameters)

    def _batch(self, points: int) -> int | None:
        """Returns the points of a mini-batch; None takes all in each step."""
        return None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name; returns the estimator."""
        names = self._names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"{type(self).__name__} has no parameter {name}; it has {', '.join(names)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_clusters={self.n_clusters})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="clusterer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_codes")

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        on_step: Callable[[int, float], object] | None = None,
        progress: bool = False,
    ) -> Self:
        """Clusters the rows of ``X``; returns the estimator.

        Parameters
        ----------
        X : array of shape (n, dims)
            Finite numbers.
        y : ignored
        sample_weight : array of shape (n,), whole numbers from 0
        on_step : callable, optional
            Gets the number of each step, from 1 in each restart, and its inertia on the grid. An exception that it
            raises ends the work, as Ctrl-C does; the estimator is then as it was.
        progress : bool
            Draws a bar of steps with tqdm; few runs take all of ``n_init * max_iter`` steps.
        """
        points = _points(X)
        self._check()
        init = self.init
        given = not isinstance(init, str)
        if not given and init not in ("k-means++", "random"):
            raise ValueError(f"init is {init!r}; it takes 'k-means++', 'random' or an array")
        weights = _weights(sample_weight, len(points))
        centroids = _points(init, "init") if given else None
        try:
            fit = _progress.steps(
                on_step,
                progress,
                self.n_init * self.max_iter,
                "inertia",
                lambda told: _tercet.KMeansFit(
                    points,
                    self.n_clusters,
                    restarts=self.n_init,
                    max_iter=self.max_iter,
                    tolerance_ppm=round(self.tol * 1e6),
                    seed=self.random_state or 0,
                    random=not given and init == "random",
                    spherical=self.spherical,
                    batch=self._batch(len(points)),
                    weights=weights,
                    centroids=centroids,
                    engine=self.engine,
                    on_step=told,
                ),
            )
        except ValueError as error:
            raise _named(error) from None
        self.labels_ = fit.labels
        self.cluster_centers_ = fit.centroids
        self.inertia_ = fit.inertia
        self.n_iter_ = fit.iterations
        self.engine_ = fit.engine
        self.n_features_in_ = points.shape[1]
        self._codes, self._grid = fit.codes, fit.grid
        return self

    def _check(self) -> None:
        """Refuses parameters out of their ranges."""
        for name in ("n_clusters", "n_init", "max_iter", "batch_size"):
            value = getattr(self, name, 1)
            if not isinstance(value, (int, _np.integer)) or not 1 <= value < 1 << 32:
                raise ValueError(f"{name} is {value!r}; it takes a whole number from 1")
        seed = self.random_state
        if seed is not None and (not isinstance(seed, (int, _np.integer)) or not 0 <= seed < 1 << 64):
            raise ValueError(f"random_state is {seed!r}; it takes a whole number from 0, or None for 0")
        if not 0 <= self.tol <= 1:
            raise ValueError(f"tol is {self.tol!r}; it takes 0 to 1")

    def transform(self, X: ArrayLike) -> NDArray[_np.float32]:
        """Returns the distance of each row of ``X`` to each centroid: float32."""
        points = self._checked(X)
        if not _np.isfinite(points).all():
            raise ValueError("X contains NaN or infinity")
        distances = [_np.linalg.norm(points - centre, axis=1) for centre in self.cluster_centers_]
        return _np.stack(distances, axis=1).astype(_np.float32)

    def fit_transform(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[_np.float32]:
        """Clusters the rows of ``X``; returns their distances to the centroids."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Returns the negative sum of squared distances of the rows of ``X`` to their nearest centroids."""
        points, labels = self._checked(X), self.predict(X)
        return -float(((points - self.cluster_centers_[labels]).astype(float) ** 2).sum())

    def fit_predict(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[_np.uint32]:
        """Clusters the rows of ``X``; returns their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: ArrayLike) -> NDArray[_np.uint32]:
        """Returns the nearest cluster of each row of ``X``: uint32."""
        points = self._checked(X)
        try:
            return _tercet.assign(points, self._codes, self._grid, self.spherical)
        except ValueError as error:
            raise _named(error) from None

    def _checked(self, X: ArrayLike) -> NDArray[_np.float32]:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted(self)
        points = _points(X)
        if points.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {points.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return points


class KMeans(_Clusterer):
    """Exact k-means of int8 points, on all threads.

    The points are put on a grid of int8 values, on which distances and sums are exact integers: the same data gives the
    same clusters on every machine. Centroids are returned in the data's own units, on that grid.

    Parameters
    ----------
    n_clusters : int
    init : {"k-means++", "random"} or array of shape (n_clusters, dims)
    n_init : int
        Restarts; the one with the lowest inertia is kept.
    max_iter : int
    tol : float
        Iterations end if one lowers the inertia by at most this part; 0 ends when no label changes.
    random_state : int
    spherical : bool
        Clusters directions: the points of a cluster have similar cosines.
    engine : {"cpu", "cuda"}
        ``cuda`` clusters on the first NVIDIA device, with the same bits. The processor clusters points that the device
        has no room for. Without a driver or a device, ``fit`` raises RuntimeError.

    Attributes
    ----------
    labels_ : array of shape (n,), uint32
    cluster_centers_ : array of shape (n_clusters, dims), float32
    inertia_ : float
    n_iter_ : int
    engine_ : str
        The engine that clustered the points, such as ``avx512`` or ``cuda``.

    Examples
    --------
    >>> kmeans = KMeans(n_clusters=2).fit([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.0, 5.1]])
    >>> bool(kmeans.labels_[0] == kmeans.labels_[1] != kmeans.labels_[2])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: int | None = 0,
        spherical: bool = False,
        engine: str = "cpu",
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.spherical = spherical
        self.engine = engine


class MiniBatchKMeans(_Clusterer):
    """k-means by mini-batches: as :class:`KMeans`, but centroids move after each batch of points.

    The result is the best of all passes, with the labels of its centroids; many points need fewer passes than steps of
    :class:`KMeans`, for a slightly higher inertia. There is no ``partial_fit``: all points are in memory.

    Parameters
    ----------
    n_clusters : int
    init : {"k-means++", "random"} or array of shape (n_clusters, dims)
    n_init : int
        Restarts; the one with the lowest inertia is kept.
    max_iter : int
        Most passes over all points.
    batch_size : int
        Points of a batch, drawn at random and perhaps more than once; as many as there are at most.
    tol : float
        Passes end if one lowers the inertia by at most this part; 0 ends when it does not fall.
    random_state : int
    spherical : bool
        Clusters directions: the points of a cluster have similar cosines.
    engine : {"cpu", "cuda"}
        ``cuda`` clusters on the first NVIDIA device, with the same bits. The processor clusters points that the device
        has no room for. Without a driver or a device, ``fit`` raises RuntimeError.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_
        As in :class:`KMeans`.
    n_iter_ : int
        Passes.
    engine_ : str
        As in :class:`KMeans`.

    Examples
    --------
    >>> kmeans = MiniBatchKMeans(n_clusters=2, batch_size=4).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> bool(kmeans.labels_[0] == kmeans.labels_[1] != kmeans.labels_[2])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike = "k-means++",
        n_init: int = 1,
        max_iter: int = 100,
        batch_size: int = 1024,
        tol: float = 0.0,
        random_state: int | None = 0,
        spherical: bool = False,
        engine: str = "cpu",
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.tol = tol
        self.random_state = random_state
        self.spherical = spherical
        self.engine = engine

    def _batch(self, points: int) -> int | None:
        return min(self.batch_size, points)


def _not_fitted(estimator: _Clusterer) -> Exception:
    """Returns scikit-learn's exception if it is there, which is a ValueError too."""
    sentence = f"this {type(estimator).__name__} is not fitted yet; call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return ValueError(sentence)
    fitted: Exception = NotFittedError(sentence)
    return fitted


def _named(error: ValueError) -> ValueError:
    """Names the values that the library calls not finite as Python does."""
    sentence = str(error)
    if "not finite" in sentence:
        sentence += ": NaN or infinity"
    return ValueError(sentence)


def _points(x: Any, name: str = "X") -> NDArray[_np.float32]:
    if hasattr(x, "toarray"):
        raise TypeError(f"sparse input is not supported; use {name}.toarray()")
    array, is_bfloat16 = _arrays.taken(x, name)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if array.ndim != 2:
        raise ValueError(
            f"{name} has the shape {array.shape}; a row per point is needed. Reshape your data"
        )
    for count, what in zip(array.shape, ("sample", "feature")):
        if count == 0:
            raise ValueError(f"0 {what}(s) (shape={array.shape}) while a minimum of 1 is required.")
    return _arrays.floats(x, name) if is_bfloat16 else _np.ascontiguousarray(array, dtype=_np.float32)


def _weights(weights: ArrayLike | None, count: int) -> NDArray[_np.uint32] | None:
    if weights is None:
        return None
    given = _arrays.taken(weights, "sample_weight").array
    whole = _np.ascontiguousarray(given, dtype=_np.uint32)
    if whole.shape != (count,) or not _np.array_equal(whole, given):
        raise ValueError("sample_weight needs a whole number from 0 to 2**32 - 1 for each point")
    if not whole.any():
        raise ValueError("every sample_weight is zero")
    return whole
