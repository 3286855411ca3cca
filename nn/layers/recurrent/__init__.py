"""Recurrent layers: RNN, LSTM, GRU and their cells."""
