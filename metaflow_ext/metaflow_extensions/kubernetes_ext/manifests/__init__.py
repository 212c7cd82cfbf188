"""What is posted: spec in, plain camelCase dict out. One function a kind, one `pod_template()` for all."""
