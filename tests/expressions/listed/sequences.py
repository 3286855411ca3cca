"""Recurrent nets and attention as functions."""

from __future__ import annotations

_W4, _W3 = "T.cat([m, -m, m * 0.5, m + 0.1])", "T.cat([m, -m, m * 0.5])"
EXPRESSIONS = [
    f"T.lstm_cell(x, (x * 0.5, y), {_W4}, {_W4})", f"T.lstm_cell(x, (x * 0.5, y), {_W4}, {_W4}, T.cat([v] * 4), T.cat([v] * 4) * 2)",
    f"T.lstm_cell(x, (x * 0.5, y), {_W3}, {_W4})", f"T.gru_cell(x, y, {_W3}, {_W3})", f"T.gru_cell(x, y, {_W3}, {_W3}, T.cat([v] * 3), T.cat([v] * 3) * 2)",
    f"T.gru_cell(x, v, {_W3}, {_W3})", "T.rnn_tanh_cell(x, y, m, m)", "T.rnn_tanh_cell(x, y, m, m, v, v)", "T.rnn_relu_cell(x, y, m, m, v, v)", "T.rnn_tanh_cell(b, y, m, m)",
    f"T.lstm(b, (b[:1], b[1:]), [{_W4}, {_W4}], False, 1, 0.0, False, False, False)",
    f"T.lstm(b, (x[None, :2] + b[:1, :2], b[1:, :2]), [{_W4}, {_W4}], False, 1, 0.0, False, False, True)",
    f"T.lstm(b, (T.cat([b, b]), T.cat([b, b])), [{_W4}, {_W4}, T.cat([v] * 4), T.cat([v] * 4)] + 3 * [T.cat([{_W4}, {_W4}], 1), {_W4}, T.cat([v] * 4), T.cat([v] * 4)], True, 2, 0.0, False, True, False)",
    f"T.lstm(T.cat([x, y, m]), T.tensor([3, 2, 2]), (b[:1], b[1:]), [{_W4}, {_W4}], False, 1, 0.0, False, False)",
    f"T.gru(b, b[:1], [{_W3}, {_W3}, T.cat([v] * 3), T.cat([v] * 3)], True, 1, 0.0, False, False, False)", f"T.gru(T.cat([x, y, m]), T.tensor([3, 2, 2]), b[:1], [{_W3}, {_W3}], False, 1, 0.0, False, False)",
    "T.rnn_tanh(b, b[:1], [m, m], False, 1, 0.0, False, False, False)", "T.rnn_tanh(b, b, [m, m, -m, m], False, 1, 0.0, False, True, True)", "T.rnn_relu(b, b[:1], [m, m, v, v], True, 1, 0.0, False, False, False)",
    "F.scaled_dot_product_attention(b, b, b)", "F.scaled_dot_product_attention(b, b, b, is_causal=True)", "F.scaled_dot_product_attention(x, m, m, k)", "F.scaled_dot_product_attention(x, m, m, y)", "F.scaled_dot_product_attention(x, m, m, scale=0.3)",
    "F.scaled_dot_product_attention(x, m, m, ~k & k)", "F.scaled_dot_product_attention(b, m, m)", "F.scaled_dot_product_attention(v, v, v)", "F.scaled_dot_product_attention(x, m, m, n)", "F.scaled_dot_product_attention(x, m, x)",
    "F.scaled_dot_product_attention(p[0][None].expand(2, 2, 5, 5), p, p)", "F.scaled_dot_product_attention(T.cat([p, p], 1), p, p, enable_gqa=True)", "F.scaled_dot_product_attention(x, m, m, dropout_p=1.5)",
    f"F.multi_head_attention_forward(b, b, b, 3, 1, {_W3}, None, None, None, False, 0.0, m, v)", f"F.multi_head_attention_forward(b, b, b, 3, 3, {_W3}, T.cat([v] * 3), None, None, True, 0.0, m, v)",
    f"F.multi_head_attention_forward(x, m, m, 3, 3, {_W3}, None, None, None, False, 0.0, m, None, attn_mask=k)", f"F.multi_head_attention_forward(x, m, m, 3, 1, {_W3}, None, None, None, False, 0.0, m, None, need_weights=False, attn_mask=y)",
]  # fmt: skip
