"""The incomplete gamma functions of large a near x = a: Temme's expansion, uniform in x (DLMF 8.12).

With mu = x / a - 1 and eta^2 / 2 = mu - log(1 + mu), eta of mu's sign: Q(a, x) = erfc(eta sqrt(a / 2)) / 2 + phi T / sqrt(a), phi = exp(-a eta^2 / 2) /
sqrt(2 pi), T = sum c_k(eta) / a^k. CK are the Taylor coefficients of c_k, by DLMF 8.12.9 to 8.12.11 in exact fractions, DK those of its derivative,
the highest power first; so many that float64 is reached for a >= NEAR and |mu| <= 0.3.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.maths import Coefficients

NEAR = tl.constexpr(100.0)  # from this a on

C0 = Coefficients((
    -5.0276692801141755e-12, 2.4361948020667415e-11, -5.830772132550426e-11, -2.5514193994946248e-11, 9.14769958223679e-10,
    -4.382036018453353e-09, 1.0261809784240309e-08, 6.707853543401498e-09, -1.7665952736826078e-07, 8.296711340953087e-07,
    -1.85406221071516e-06, -2.185448510679992e-06, 3.919263178522438e-05, -0.0001787551440329218, 0.0003527336860670194,
    0.0011574074074074073, -0.014814814814814815, 0.08333333333333333, -0.3333333333333333,
))  # fmt: skip
D0 = Coefficients((
    -9.049804704205516e-11, 4.141531163513461e-10, -9.32923541208068e-10, -3.8271290992419376e-10, 1.2806779415131507e-08,
    -5.696646823989359e-08, 1.231417174108837e-07, 7.378638897741648e-08, -1.766595273682608e-06, 7.467040206857778e-06,
    -1.483249768572128e-05, -1.5298139574759944e-05, 0.00023515579071134627, -0.000893775720164609, 0.0014109347442680777,
    0.003472222222222222, -0.02962962962962963, 0.08333333333333333,
))  # fmt: skip
C1 = Coefficients((
    -8.56390702649298e-11, 4.162792991842583e-10, -1.0091543710600413e-09, -1.7543241719747647e-11, 1.1951628599778148e-08,
    -5.752545603517705e-08, 1.378633446915721e-07, 4.647127802807434e-09, -1.6120900894563446e-06, 7.64916091608111e-06,
    -1.8098550334489977e-05, -4.018775720164609e-07, 0.00020576131687242798, -0.0009902263374485596, 0.0026455026455026454,
    -0.003472222222222222, -0.001851851851851852,
))  # fmt: skip
D1 = Coefficients((
    -1.3702251242388768e-09, 6.244189487763874e-09, -1.4128161194840578e-08, -2.280621423567194e-10, 1.4341954319733777e-07,
    -6.327800163869476e-07, 1.378633446915721e-06, 4.182415022526691e-08, -1.2896720715650757e-05, 5.354412641256777e-05,
    -0.00010859130200693987, -2.0093878600823047e-06, 0.0008230452674897119, -0.002970679012345679, 0.005291005291005291,
    -0.003472222222222222,
))  # fmt: skip
C2 = Coefficients((
    6.228974084922022e-09, -1.409252991086752e-08, -2.0477098421990866e-10, 1.4280614206064242e-07, -6.298992138380055e-07,
    1.3721957309062934e-06, 3.423578734096138e-08, -1.2760635188618728e-05, 5.2923448829120125e-05, -0.0001073665322636516,
    2.0093878600823047e-06, 0.0007716049382716049, -0.0026813271604938273, 0.004133597883597883,
))  # fmt: skip
D2 = Coefficients((
    8.097666310398628e-08, -1.6911035893041025e-07, -2.252480826418995e-09, 1.428061420606424e-06, -5.669092924542049e-06,
    1.0977565847250347e-05, 2.396505113867297e-07, -7.656381113171237e-05, 0.00026461724414560063, -0.0004294661290546064,
    6.028163580246913e-06, 0.0015432098765432098, -0.0026813271604938273,
))  # fmt: skip
C3 = Coefficients((
    8.099464905388083e-08, -1.6958404091930278e-07, -2.7861080291528143e-11, 1.4230900732435883e-06, -5.6749528269915965e-06,
    1.1082654115347302e-05, -2.396505113867297e-07, -7.561801671883977e-05, 0.00026772063206283885, -0.0004691894943952557,
    0.00022947209362139917, 0.0006494341563786008,
))  # fmt: skip
D3 = Coefficients((
    8.90941139592689e-07, -1.6958404091930277e-06, -2.507497226237533e-10, 1.1384720585948707e-05, -3.9724669788941176e-05,
    6.649592469208381e-05, -1.1982525569336483e-06, -0.00030247206687535906, 0.0008031618961885166, -0.0009383789887905114,
    0.00022947209362139917,
))  # fmt: skip
C4 = Coefficients((
    8.907507532205309e-07, -1.6954149536558305e-06, 2.507497226237533e-10, 1.1375726970678419e-05, -3.968365047179435e-05,
    6.641498215465122e-05, -1.4638452578843418e-06, -0.0002990724803031902, 0.0007840392217200666, -0.0008618882909167117,
))  # fmt: skip
D4 = Coefficients((
    8.016756778984779e-06, -1.3563319629246644e-05, 1.755248058366273e-09, 6.825436182407052e-05, -0.00019841825235897173,
    0.0002656599286186049, -4.391535773653025e-06, -0.0005981449606063804, 0.0007840392217200666,
))  # fmt: skip
C5 = Coefficients((
    8.018470256334202e-06, -1.3594048189768693e-05, 1.419062920643967e-07, 6.797780477937208e-05, -0.00019932570516188847,
    0.0002772753244959392, -6.972813758365857e-05, -0.00033679855336635813,
))  # fmt: skip
D5 = Coefficients((
    5.6129291794339414e-05, -8.156428913861216e-05, 7.095314603219835e-07, 0.0002719112191174883, -0.0005979771154856654,
    0.0005545506489918784, -6.972813758365857e-05,
))  # fmt: skip
C6 = Coefficients((
    5.61168275310625e-05, -8.153969367561969e-05, 7.902353232660328e-07, 0.0002708782096718045, -0.0005921664373536939,
    0.0005313079364639922,
))  # fmt: skip
D6 = Coefficients((
    0.0002805841376553125, -0.00032615877470247877, 2.3707059697980986e-06, 0.000541756419343609, -0.0005921664373536939,
))  # fmt: skip
LOG_REST = Coefficients(tuple(2.0 / (2 * k + 1) for k in range(12, 0, -1)))  # 2 artanh(s) = 2 s + s^3 (2/3 + s^2 (2/5 + ...))
# gamma(a) = sqrt(2 pi / a) (a / e)^a times this in 1 / a, DLMF 5.11.3
STIRLING = Coefficients(
    (6.972813758365857e-05, 0.0007840392217200666, -0.00022947209362139917, -0.0026813271604938273, 0.003472222222222222, 1 / 12, 1.0)
)


# mu - log(1 + mu) = mu s - (2 artanh(s) - 2 s), s = mu / (2 + mu), which cancels little
@triton.jit
def eta(mu):
    s = maths.div(mu, 2.0 + mu)
    half = mu * s - s * s * s * maths.horner(s * s, LOG_REST)
    return maths.sign(mu) * maths.sqrt(2.0 * maths.maximum(half, maths.zeros(half)))


# T = c_0 + u (c_1 + u (c_2 + ...)), u = 1 / a
@triton.jit
def correction(u, y):
    t = maths.horner(y, C5) + u * maths.horner(y, C6)
    t = maths.horner(y, C3) + u * (maths.horner(y, C4) + u * t)
    t = maths.horner(y, C1) + u * (maths.horner(y, C2) + u * t)
    return maths.horner(y, C0) + u * t


# dT/deta
@triton.jit
def correction_by_eta(u, y):
    t = maths.horner(y, D5) + u * maths.horner(y, D6)
    t = maths.horner(y, D3) + u * (maths.horner(y, D4) + u * t)
    t = maths.horner(y, D1) + u * (maths.horner(y, D2) + u * t)
    return maths.horner(y, D0) + u * t


# dT/du
@triton.jit
def correction_by_u(u, y):
    t = 5.0 * maths.horner(y, C5) + u * (6.0 * maths.horner(y, C6))
    t = 3.0 * maths.horner(y, C3) + u * (4.0 * maths.horner(y, C4) + u * t)
    return maths.horner(y, C1) + u * (2.0 * maths.horner(y, C2) + u * t)


# P(a, x) = erfc(-eta sqrt(a / 2)) / 2 - phi T / sqrt(a); Q(a, x) the same with eta and + where not lower
@triton.jit
def incomplete(a, x, lower):
    y = eta(maths.div(x - a, a))
    turned = maths.where(lower, -y, y)
    sign = maths.where(lower, -1.0, 1.0)
    u = maths.div(maths.ones(a), a)
    phi = maths.exp(-0.5 * a * y * y) * 0.3989422804014327
    return 0.5 * maths.erfc(turned * maths.sqrt(0.5 * a)) + sign * phi * correction(u, y) * maths.sqrt(u)


# dx/da at a fixed P, -(dP/da) / (dP/dx) = x G / a ((mu / eta - eta / 2)(1 + eta T) + dT/da - T / (2 a)), G Stirling's factor of gamma(a),
# where deta/da = -mu / (a eta) at a fixed x
@triton.jit
def quantile_by_a(a, x):
    mu = maths.div(x - a, a)
    y = eta(mu)
    u = maths.div(maths.ones(a), a)
    slope = maths.where(mu == 0, 1.0, maths.div(mu, maths.where(mu == 0, 1.0, y)))
    t = correction(u, y)
    by_a = -slope * u * correction_by_eta(u, y) - u * u * correction_by_u(u, y)
    return x * u * maths.horner(u, STIRLING) * ((slope - 0.5 * y) * (1.0 + y * t) + by_a - 0.5 * u * t)
