"""The synchronous client, generated from `quercus.client.aio`; import `Client` from `quercus.client`."""
