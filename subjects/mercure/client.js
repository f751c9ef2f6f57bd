const events = new EventSource('http://127.0.0.1:8000/.well-known/mercure?topic=news')
events.onmessage = ({ data }) => console.log(data)
