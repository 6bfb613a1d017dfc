//! Clustering and its scores.

use core::hint::black_box;

use tercet_core::cluster::{
    Kmeans, Lloyd, Online, Points, Sphere, Summary, float, greedy_candidates, inertia, kmeans,
    lloyd, means, mini_batch, nearest, normalize, normalize_floats, predict, score, seed,
    summarize, transform,
};
use tercet_core::f16;
use tercet_core::scalar::Clusters;

use crate::reach::reach;

reach! {
    float::Labelled::<f32>::check,
    float::Labelled::<f32>::run,
    float::inertia::<f32>,
    score::davies_bouldin,
    score::davies_bouldin_scratch,
    score::Silhouette::new,
    score::Silhouette::len,
    score::Silhouette::clusters,
    score::Silhouette::part,
    score::Silhouette::finish,
    score::SilhouettePart::merge,
    score::silhouette,
    score::silhouette_plan,
    score::silhouette_scratch,
    <Kmeans as Default>::default,
    kmeans::<Clusters<'static, i32>>,
    kmeans::<Clusters<'static, i64>>,
    <Lloyd as Default>::default,
    lloyd::<Clusters<'static, i32>>,
    means,
    mini_batch::<Clusters<'static, i32>>,
    Online::<8, 6>::save,
    Online::<8, 6>::load,
    Online::<8, 6>::new,
    Online::<8, 6>::with_centroids,
    Online::<8, 6>::set_cap,
    Online::<8, 6>::observe,
    Online::<1, 1>::observe,
    Online::<300, 7>::observe,
    Online::<8, 6>::predict,
    Online::<8, 6>::centroids,
    Online::<8, 6>::sums,
    Online::<8, 6>::counts,
    Online::<8, 6>::cap,
    <Online<8, 6> as Default>::default,
    Points::new,
    Points::weighted,
    Points::values,
    Points::dims,
    Points::len,
    Points::weights,
    Points::weight,
    Points::counted,
    Points::heaviest,
    Points::row,
    Points::rows,
    Points::part,
    Points::check_clusters,
    inertia,
    nearest,
    predict,
    transform,
    greedy_candidates,
    seed::<Clusters<'static, i32>>,
    Sphere::squared_radius,
    normalize,
    normalize_floats::<f32>,
    Summary::merge,
    summarize,
    normalize_floats::<f16>,
    each_row,
}

fn each_row(points: &Points<'_>) {
    points.rows().for_each(|row| {
        black_box(row);
    });
}
