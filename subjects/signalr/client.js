import { HubConnectionBuilder } from '@microsoft/signalr'

const connection = new HubConnectionBuilder().withUrl('http://127.0.0.1:8000/hub').build()
connection.on('msg', (data) => console.log(data))
connection.start().then(() => connection.invoke('Join', 'news'))
