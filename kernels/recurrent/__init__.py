"""Recurrent nets over whole sequences: lstm_sequence, gru_sequence, rnn_sequence."""
