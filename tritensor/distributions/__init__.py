"""Distributions, transforms between them, divergences. PyTorch's `torch.distributions`; imported when it is asked for."""

from tritensor.distributions.combined.independent import Independent as Independent
from tritensor.distributions.combined.transformed import TransformedDistribution as TransformedDistribution
from tritensor.distributions.constraint_registry import biject_to as biject_to
from tritensor.distributions.constraint_registry import transform_to as transform_to
from tritensor.distributions.continuous.cauchy import Cauchy as Cauchy
from tritensor.distributions.continuous.cauchy import HalfCauchy as HalfCauchy
from tritensor.distributions.continuous.continuous_bernoulli import ContinuousBernoulli as ContinuousBernoulli
from tritensor.distributions.continuous.exponential import Exponential as Exponential
from tritensor.distributions.continuous.gumbel import Gumbel as Gumbel
from tritensor.distributions.continuous.half_normal import HalfNormal as HalfNormal
from tritensor.distributions.continuous.kumaraswamy import Kumaraswamy as Kumaraswamy
from tritensor.distributions.continuous.laplace import Laplace as Laplace
from tritensor.distributions.continuous.log_normal import LogNormal as LogNormal
from tritensor.distributions.continuous.normal import Normal as Normal
from tritensor.distributions.continuous.pareto import GeneralizedPareto as GeneralizedPareto
from tritensor.distributions.continuous.pareto import Pareto as Pareto
from tritensor.distributions.continuous.student_t import StudentT as StudentT
from tritensor.distributions.continuous.uniform import Uniform as Uniform
from tritensor.distributions.continuous.von_mises import VonMises as VonMises
from tritensor.distributions.continuous.weibull import Weibull as Weibull
from tritensor.distributions.discrete.bernoulli import Bernoulli as Bernoulli
from tritensor.distributions.discrete.bernoulli import Geometric as Geometric
from tritensor.distributions.discrete.binomial import Binomial as Binomial
from tritensor.distributions.discrete.binomial import NegativeBinomial as NegativeBinomial
from tritensor.distributions.discrete.categorical import Categorical as Categorical
from tritensor.distributions.discrete.multinomial import Multinomial as Multinomial
from tritensor.distributions.discrete.one_hot_categorical import OneHotCategorical as OneHotCategorical
from tritensor.distributions.discrete.one_hot_categorical import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from tritensor.distributions.discrete.poisson import Poisson as Poisson
from tritensor.distributions.distribution import Distribution as Distribution
from tritensor.distributions.exp_family import ExponentialFamily as ExponentialFamily
from tritensor.distributions.gamma_family.dirichlet import Beta as Beta
from tritensor.distributions.gamma_family.dirichlet import Dirichlet as Dirichlet
from tritensor.distributions.gamma_family.fisher_snedecor import FisherSnedecor as FisherSnedecor
from tritensor.distributions.gamma_family.gamma import Chi2 as Chi2
from tritensor.distributions.gamma_family.gamma import Gamma as Gamma
from tritensor.distributions.gamma_family.inverse_gamma import InverseGamma as InverseGamma
from tritensor.distributions.kl import kl_divergence as kl_divergence
from tritensor.distributions.kl import register_kl as register_kl
from tritensor.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from tritensor.distributions.multivariate.lkj_cholesky import LKJCholesky as LKJCholesky
from tritensor.distributions.multivariate.logistic_normal import LogisticNormal as LogisticNormal
from tritensor.distributions.multivariate.lowrank_multivariate_normal import LowRankMultivariateNormal as LowRankMultivariateNormal
from tritensor.distributions.multivariate.multivariate_normal import MultivariateNormal as MultivariateNormal
from tritensor.distributions.multivariate.wishart import Wishart as Wishart
from tritensor.distributions.relaxed_bernoulli import RelaxedBernoulli as RelaxedBernoulli
from tritensor.distributions.relaxed_categorical import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from tritensor.distributions.transforms import AbsTransform as AbsTransform
from tritensor.distributions.transforms import AffineTransform as AffineTransform
from tritensor.distributions.transforms import CatTransform as CatTransform
from tritensor.distributions.transforms import ComposeTransform as ComposeTransform
from tritensor.distributions.transforms import CorrCholeskyTransform as CorrCholeskyTransform
from tritensor.distributions.transforms import CumulativeDistributionTransform as CumulativeDistributionTransform
from tritensor.distributions.transforms import ExpTransform as ExpTransform
from tritensor.distributions.transforms import IndependentTransform as IndependentTransform
from tritensor.distributions.transforms import LowerCholeskyTransform as LowerCholeskyTransform
from tritensor.distributions.transforms import PositiveDefiniteTransform as PositiveDefiniteTransform
from tritensor.distributions.transforms import PowerTransform as PowerTransform
from tritensor.distributions.transforms import ReshapeTransform as ReshapeTransform
from tritensor.distributions.transforms import SigmoidTransform as SigmoidTransform
from tritensor.distributions.transforms import SoftmaxTransform as SoftmaxTransform
from tritensor.distributions.transforms import SoftplusTransform as SoftplusTransform
from tritensor.distributions.transforms import StackTransform as StackTransform
from tritensor.distributions.transforms import StickBreakingTransform as StickBreakingTransform
from tritensor.distributions.transforms import TanhTransform as TanhTransform
from tritensor.distributions.transforms import Transform as Transform
from tritensor.distributions.transforms import identity_transform as identity_transform

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution", "ExpTransform",
    "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
    "Independent", "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial",
    "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform",
    "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises",
    "Weibull", "Wishart", "biject_to", "identity_transform", "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip
