"""Networks: the convolutions of an ONNX model or a CSV table, and what their training costs on targets."""
