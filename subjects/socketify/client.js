const socket = new WebSocket('ws://127.0.0.1:8000/ws?channel=news')
socket.onmessage = ({ data }) => console.log(data)
