import SockJS from 'sockjs-client'

const connection = new SockJS('http://127.0.0.1:8000/sockjs')
connection.onopen = () => connection.send(JSON.stringify(['sub', 'news']))
connection.onmessage = ({ data }) => console.log(data)
