"""What a MODEL means: a catalogue id, a Hub id, a config.json or a params.json -> one resolved `Model`. Imports `spec` and below."""
